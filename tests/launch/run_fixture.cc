#include "tests/launch/run_fixture.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "launcher/supervise/event_log.h"

namespace ptrain {

namespace {

namespace fs = std::filesystem;
using std::chrono::milliseconds;

constexpr const char* kRecipe = R"(version: 1
name: launched
seed: 1
model: {hidden_size: 64, intermediate_size: 128, num_hidden_layers: 2, num_attention_heads: 4}
data: {tokenizer: byte, train: [{path: text.txt}]}
shapes:
  - {name: short, sequence: 32, global_batch_tokens: 128, steps: 30}
  - {name: long, sequence: 64, global_batch_tokens: 128, steps: 10}
learning_rate: {peak: 1e-3}
parallel: {dp: 2, shard: 1}
cluster: {file: cluster.yaml, ranks_per_node: 2}
checkpoint: {every_steps: 10}
)";

constexpr const char* kCluster = R"(name: test
nodes: [{name: here, cores: 2, memory_gib: 8}]
)";

constexpr int kPolls = 1500;  // of 20 ms
constexpr milliseconds kPoll{20};

}  // namespace

void RunFixture::SetUp() {
  char name[] = "/tmp/ptrain-launch-XXXXXX";
  folder_ = ::mkdtemp(name);
  write("recipe.yaml", kRecipe);
  write("cluster.yaml", kCluster);
  std::string text;
  for (int i = 0; i < 200; ++i) text += "line " + std::to_string(i * i) + " of some text\n";
  write("text.txt", text);
  run_.root = folder_ + "/run";
  environment_ = {{"XDG_CACHE_HOME", folder_ + "/cache"}};
}

void RunFixture::TearDown() {
  EXPECT_EQ(processes_alive(), 0) << "processes are left behind";
  fs::remove_all(folder_);
}

void RunFixture::write(const std::string& name, const std::string& text) const {
  std::ofstream(folder_ + "/" + name) << text;
}

std::string RunFixture::read(const std::string& path) const {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

base::Subprocess RunFixture::start(std::vector<std::string> arguments,
                                   const std::string& fake) const {
  arguments.insert(arguments.begin(), binary_);
  arguments.insert(arguments.begin(), prefix_.begin(), prefix_.end());
  Environment environment = environment_;
  environment.emplace_back("PTRAIN_FAKE", fake);
  environment.emplace_back("PTRAIN_FAKE_ONCE", once_);
  auto process = base::Subprocess::start({arguments, environment});
  EXPECT_TRUE(process);
  return std::move(*process);
}

base::Subprocess RunFixture::start_run(const std::string& fake,
                                       std::vector<std::string> more) const {
  std::vector<std::string> arguments{"run", folder_ + "/recipe.yaml", "--directory", run_.root};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return start(arguments, fake);
}

int RunFixture::end_of(base::Subprocess process) {
  output_.clear();
  for (;;) {
    const auto status = process.poll();
    output_ += process.read_output();
    took_ = std::chrono::duration<double>(Clock::now() - since_).count();
    if (status) return status->signal != 0 ? -status->signal : status->code;
    if (took_ > 60) return -1000;
    std::this_thread::sleep_for(milliseconds(10));
  }
}

int RunFixture::run_command(std::vector<std::string> arguments, const std::string& fake) {
  since_ = Clock::now();
  return end_of(start(std::move(arguments), fake));
}

void RunFixture::wait_for(run::EventKind kind, int num) {
  for (int i = 0; i < kPolls && count(kind) < num; ++i) std::this_thread::sleep_for(kPoll);
  ASSERT_GE(count(kind), num);
  std::this_thread::sleep_for(milliseconds(100));
  since_ = Clock::now();
}

void RunFixture::wait_for_step(std::int64_t step) {
  const std::string wanted = "\"step\":" + std::to_string(step) + ",";
  for (int i = 0; i < kPolls; ++i) {
    if (read(run_.metrics()).find(wanted) != std::string::npos) break;
    std::this_thread::sleep_for(kPoll);
  }
  since_ = Clock::now();
}

std::vector<run::Event> RunFixture::events(run::EventKind kind) const {
  std::vector<run::Event> found;
  const auto all = supervise::read_events(run_.events());
  if (!all) return found;
  for (const auto& event : *all)
    if (event.kind == kind) found.push_back(event);
  return found;
}

int RunFixture::pid_of(int rank) const {
  int pid = -1;
  for (const auto& event : events(run::EventKind::kRankReady))
    if (event.rank == rank) pid = event.fields.at("pid").get<int>();
  return pid;
}

int RunFixture::processes_alive() const {
  int alive = 0;
  for (const auto& entry : fs::directory_iterator("/proc"))
    if (read(entry.path() / "cmdline").find(folder_) != std::string::npos) ++alive;
  return alive;
}

run::Verdict RunFixture::verdict() const {
  const auto known = supervise::read_verdict(run_.verdict());
  EXPECT_TRUE(known);
  return known.value_or(run::Verdict{});
}

}  // namespace ptrain
