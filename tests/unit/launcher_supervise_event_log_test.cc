#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "launcher/supervise/event_log.h"

namespace ptrain::supervise {
namespace {

TEST(Verdict, ADamagedFileIsNamedWithARemedy) {
  const auto path = std::filesystem::temp_directory_path() /
                    ("ptrain-verdict-" + std::to_string(::getpid()) + ".json");
  for (const char* text : {"", "{\"code\": 0", "[]", "{\"code\": 99}"}) {
    std::ofstream(path) << text;
    const auto verdict = read_verdict(path.string());
    ASSERT_FALSE(verdict) << text;
    EXPECT_EQ(verdict.error().place.file, path.string());
    EXPECT_NE(verdict.error().hint.find("remove the file"), std::string::npos);
  }
  std::filesystem::remove(path);
}

TEST(EventLog, SaysThatItsDirectoryIsGone) {
  EventLog log(run::Directory{"/nowhere/run"});
  const Status status = log.write(run::EventKind::kWarning, -1, {{"message", "m"}});
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ExitCode::kUnusable);
  EXPECT_NE(status.error().message.find("/nowhere/run/events.jsonl: the run directory was removed"),
            std::string::npos);
}

}  // namespace
}  // namespace ptrain::supervise
