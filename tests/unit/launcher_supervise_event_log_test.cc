#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "launcher/base/file.h"
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
  EXPECT_EQ(status.error().hint, "move it back") << "how it goes on is said behind it";
}

// The line that a loss of power cut short is lost, and no other.
TEST(EventLog, ATornLineDoesNotSwallowTheNextEvent) {
  std::string folder = testing::TempDir() + "ptrain-events-XXXXXX";
  const run::Directory directory{::mkdtemp(folder.data())};
  std::ofstream(directory.events()) << "{\"attempt\":0,\"kind\":\"run_c";
  ASSERT_TRUE(EventLog(directory).write(run::EventKind::kWarning, 1));
  const auto damaged = read_events(directory.events());
  ASSERT_FALSE(damaged);
  EXPECT_EQ(damaged.error().place.line, 1);
  std::string text = read_file(directory.events(), 4096).value();
  std::ofstream(directory.events()) << text.substr(text.find('\n') + 1);  // as the remedy says
  EXPECT_EQ(read_events(directory.events())->size(), 1u);
  std::filesystem::remove_all(folder);
}

TEST(EventLog, APipeIsRefused) {
  std::string folder = testing::TempDir() + "ptrain-events-XXXXXX";
  const run::Directory directory{::mkdtemp(folder.data())};
  ASSERT_EQ(::mkfifo(directory.events().c_str(), 0600), 0);
  const Status status = EventLog(directory).write(run::EventKind::kWarning, 1);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().message.find("not a regular file"), std::string::npos);
  std::filesystem::remove_all(folder);
}

// A limit on the size of files stands in for a full disk.
TEST(EventLog, AFullDiskLosesNoEvent) {
  std::string folder = testing::TempDir() + "ptrain-events-XXXXXX";
  const run::Directory directory{::mkdtemp(folder.data())};
  EventLog log(directory);
  ASSERT_TRUE(log.write(run::EventKind::kWarning, 1));
  const auto size = std::filesystem::file_size(directory.events());
  ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit little{size + 10, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &little), 0);
  const Status second = log.write(run::EventKind::kWarning, 2);
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(second);
  EXPECT_EQ(std::filesystem::file_size(directory.events()), size) << "no part of a line";
  EXPECT_TRUE(log.write(run::EventKind::kWarning, 3));
  const auto events = read_events(directory.events());
  ASSERT_TRUE(events);
  ASSERT_EQ(events->size(), 3u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ((*events)[static_cast<std::size_t>(i)].rank, i + 1);
  std::filesystem::remove_all(folder);
}

TEST(EventLog, AddedEventsAreWrittenTogether) {
  std::string folder = testing::TempDir() + "ptrain-events-XXXXXX";
  const run::Directory directory{::mkdtemp(folder.data())};
  EventLog log(directory);
  log.add(run::EventKind::kWarning, 1, {});
  log.add(run::EventKind::kWarning, 2, {});
  EXPECT_FALSE(std::filesystem::exists(directory.events()));
  EXPECT_TRUE(log.flush());
  EXPECT_TRUE(log.flush()) << "nothing is left";
  const auto events = read_events(directory.events());
  ASSERT_TRUE(events);
  EXPECT_EQ(events->size(), 2u);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace ptrain::supervise
