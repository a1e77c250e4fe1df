// What a user can get wrong before or at the start, through the real command: a clear error with
// place, reason and remedy, the documented exit code, and nothing half-written.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/launch/run_fixture.h"

namespace ptrain {
namespace {

namespace fs = std::filesystem;

// Refused before anything is written, so an engine without tensors is as good as the real one.
class BadInput : public RunFixture {
 protected:
  BadInput() : RunFixture(PTRAIN_TEST_BINARY) {}

  void expect_refused(int code, std::initializer_list<const char*> parts) {
    EXPECT_EQ(last_code_, code) << output_;
    for (const char* part : parts) EXPECT_TRUE(said(part)) << part << " is missing in\n" << output_;
    EXPECT_FALSE(fs::exists(run_.root)) << "something was written";
  }
  void try_run(std::vector<std::string> more = {}) { last_code_ = run_recipe(std::move(more)); }
  void try_shell(const std::string& command) {
    const auto ended = base::run_to_end({{"/bin/sh", "-c", command}, environment_});
    ASSERT_TRUE(ended);
    output_ = ended->output;
    last_code_ = ended->status.code;
  }
  std::string run_text() const {
    return binary_ + " run " + folder_ + "/recipe.yaml --directory " + run_.root;
  }

  // An executable script.
  void write_program(const std::string& name, const std::string& text) const {
    write(name, "#!/bin/sh\n" + text);
    fs::permissions(folder_ + "/" + name, fs::perms::owner_all);
  }

  int last_code_ = 0;
};

TEST_F(BadInput, CommandsAndOptionsThatDoNotExist) {
  last_code_ = run_command({"rnu", "recipe.yaml"});
  expect_refused(2, {"unknown command 'rnu'; did you mean 'run'?", "commands: ", "resume"});
  try_run({"--fast"});
  expect_refused(2, {"ptrain: ", "--fast", "--help"});
  last_code_ = run_command({"status"});
  expect_refused(2, {"run is required"});
  last_code_ = run_command({"plan", ""});
  expect_refused(2, {"recipe", "is empty"});
  last_code_ = run_command({"plan", folder_ + "/recipe.yaml", "--cluster", ""});
  expect_refused(2, {"--cluster", "is empty"});
  try_run({"shpes.0.steps=3"});
  expect_refused(2, {"override 'shpes.0.steps=3'", "unknown key", "shapes"});
}

TEST_F(BadInput, RecipesThatCannotBeRead) {
  last_code_ = run_command({"run", folder_ + "/none.yaml"});
  expect_refused(2, {"none.yaml", "No such file"});
  last_code_ = run_command({"run", folder_});
  expect_refused(2, {folder_.c_str()});
  write("recipe.yaml", "version: 1\nname: [\n");
  try_run();
  expect_refused(2, {"recipe.yaml:"});
}

TEST_F(BadInput, NoOpenMpi) {
  environment_.emplace_back("PATH", folder_);
  try_run();
  expect_refused(3, {"mpirun is not in PATH", "apt-get install openmpi-bin"});
}

TEST_F(BadInput, AnotherMpi) {
  write_program("mpirun", "echo 'HYDRA build details:'\n");
  environment_.emplace_back("PATH", folder_ + ":/usr/bin:/bin");
  try_run();
  expect_refused(3, {"is not Open MPI 4.1 or newer; it says 'HYDRA build details:'", "install"});
  write_program("mpirun", "echo 'mpirun (Open MPI) 3.1.6'\n");
  try_run();
  expect_refused(3, {"it says 'mpirun (Open MPI) 3.1.6'"});
}

TEST_F(BadInput, GpusWithoutAnEngineForThem) {
  write("cluster.yaml",
        "name: gpus\nnodes: [{name: here, cores: 2, memory_gib: 8, gpus: 2, gpu_memory_gib: 8}]\n");
  try_run();
  expect_refused(3, {"the plan puts ranks on GPUs", "built without CUDA",
                     "libptrain_engine_cuda.so is missing", "preset `cuda`"});
}

TEST_F(BadInput, ExpertsOnGpus) {
  write("cluster.yaml",
        "name: gpus\nnodes: [{name: here, cores: 2, memory_gib: 8, gpus: 2, gpu_memory_gib: 8}]\n");
  try_run({"model.family=mixtral"});
  expect_refused(2, {"models of family mixtral can be planned for GPUs, but not run there",
                     "a cluster file without GPUs"});
}

TEST_F(BadInput, NoEngine) {
  fs::copy_file(binary_, folder_ + "/ptrain");
  binary_ = folder_ + "/ptrain";
  try_run();
  expect_refused(3, {"no engine: ", "libptrain_engine.so is missing", "scripts/setup"});
}

TEST_F(BadInput, AStepWhoseRowsAreMoreThanMemoryHolds) {
  try_run({"shapes.0.global_batch_tokens=64000000000"});
  expect_refused(4, {"short", "MiB"});
}

TEST_F(BadInput, MoreRanksThanMemoryAllows) {
  write("cluster.yaml", "name: test\nnodes: [{name: here, cores: 2, memory_gib: 0.01}]\n");
  try_run();
  expect_refused(4, {"MiB"});
}

// Of two ranks, one micro-batch of two rows each where nothing else is said.
TEST_F(BadInput, LayoutsThatCannotBe) {
  try_run({"parallel.dp=3"});
  expect_refused(2, {"parallel.dp: dp x shard is 3, but cluster.ranks_per_node is 2"});
  try_run({"parallel.dp=1", "parallel.tp=2", "model.num_attention_heads=3", "model.head_dim=16"});
  expect_refused(
      4, {"tp is 2, which does not divide 3 attention heads", "the nearest that does is tp 1"});
  try_run({"parallel.dp=1", "parallel.cp.ulysses=2", "model.num_attention_heads=3",
           "model.head_dim=16"});
  expect_refused(4, {"cp.ulysses is 2, which does not divide 3 attention heads",
                     "the nearest that does is cp.ulysses 1"});
  try_run({"parallel.ep=4", "model.family=mixtral", "model.num_experts=2"});
  expect_refused(4, {"ep is 4, which does not divide 2 experts", "the nearest that does is ep 2"});
  try_run({"parallel.dp=1", "parallel.pp=2", "parallel.virtual=2", "parallel.micro_batch=4",
           "parallel.schedule=dualpipe_v", "shapes.1.global_batch_tokens=256"});
  expect_refused(4, {"dualpipe_v", "4 micro-batches"});
}

TEST_F(BadInput, SchedulesThatCannotRun) {
  const std::vector<std::string> overrides{"parallel.dp=1", "parallel.pp=2",
                                           "parallel.micro_batch=2", "parallel.schedule=own.csv",
                                           "shapes.1.global_batch_tokens=256"};
  try_run(overrides);
  expect_refused(2, {"own.csv", "parallel.schedule: ", "No such file"});
  write("own.csv", "0F0,0F1,0B0,0B1\n1F0,1B0,1F1\n");
  try_run(overrides);
  expect_refused(2, {"own.csv", "rank 1, cell 3 (1F1): there is no 1B1 for it"});
  write("own.csv", "0F0,0F1,0B0,0B1\n2F0,2B0,2F1,2B1\n");
  try_run(overrides);
  expect_refused(2, {"own.csv", "no rank works on stage 1"});
  write("own.csv", "0F0,0F1,0B0,0B1\n0F0,1F0,1F1,1B0,1B1\n");
  try_run(overrides);
  expect_refused(2, {"own.csv", "stage 0 is on rank 1 too"});
  write("own.csv", "0F0,0B0\n1F0,1B0\n");
  try_run(overrides);
  expect_refused(4, {"the schedule's file has 1 micro-batches, but a step 2 of each rank"});
}

TEST_F(BadInput, ARunFolderThatExists) {
  fs::create_directory(run_.root);
  try_run();
  EXPECT_EQ(last_code_, 2);
  EXPECT_TRUE(said("exists already") && said("choose another --directory\n")) << output_;
  EXPECT_TRUE(fs::is_empty(run_.root));
  fs::remove(run_.root);
  try_run();
  ASSERT_EQ(last_code_, 0) << output_;
  for (const bool dry : {false, true}) {
    try_run(dry ? std::vector<std::string>{"--dry-run"} : std::vector<std::string>{});
    EXPECT_EQ(last_code_, 2);
    EXPECT_TRUE(said("exists already") && said("continue it with `ptrain resume " + run_.root))
        << output_;
  }
}

TEST_F(BadInput, RunsOfTheSameSecondHaveFoldersOfTheirOwn) {
  try_shell("cd " + folder_ + " && for i in 1 2 3; do (" + binary_ +
            " run recipe.yaml || echo REFUSED) & done; wait");
  EXPECT_FALSE(said("REFUSED")) << output_;
  const fs::directory_iterator runs(folder_ + "/runs/launched");
  EXPECT_EQ(std::distance(begin(runs), end(runs)), 3);
}

TEST_F(BadInput, RunsThatCannotBeWritten) {
  run_.root = "/proc/ptrain-cannot-write-here";
  try_run();
  expect_refused(3, {"cannot create /proc/ptrain-cannot-write-here", "--directory"});
}

TEST_F(BadInput, NotARun) {
  for (const char* command : {"status", "logs", "explain", "stop", "resume"}) {
    last_code_ = run_command({command, folder_});
    expect_refused(2, {"is not a run directory", "ptrain list"});
  }
}

TEST_F(BadInput, AWorkerStartedByHand) {
  last_code_ = run_command({"worker", "--request", R"({"mode":"train"})"});
  expect_refused(2, {"request: "});
  write("request.json",
        R"({"mode":"probe","run_directory":"","attempt":0,"shape":"","control_host":"",)"
        R"("control_port":0,"resume_from":"","output":""})");
  last_code_ = run_command({"worker", "--request", folder_ + "/request.json"});
  expect_refused(2, {"no launcher has started it", "ptrain run"});
}

TEST_F(BadInput, OutputThatCannotBeWritten) {
  try_shell(binary_ + " --help > /dev/full");
  expect_refused(3, {"cannot write to stdout"});
  try_shell(binary_ + " --help >&-");
  expect_refused(3, {"cannot write to stdout"});
}

// Whatever is closed, no file of the run may get the number of a standard file.
TEST_F(BadInput, ClosedStandardFilesHarmNothing) {
  try_shell(run_text() + " <&- >&- 2>&-");
  EXPECT_EQ(last_code_, 0);
  EXPECT_EQ(verdict().step, 40);
  EXPECT_EQ(read(run_.lock()).find("step"), std::string::npos);
}

TEST_F(BadInput, AnotherTorch) {
  fs::create_directories(folder_ + "/torch/lib");
  fs::copy_file("/usr/lib/x86_64-linux-gnu/libxxhash.so.0", folder_ + "/torch/lib/libtorch_cpu.so");
  write("torch/version.py", "__version__ = '2.10.0+cpu'\n");
  environment_.emplace_back("LD_PRELOAD", folder_ + "/torch/lib/libtorch_cpu.so");
  EXPECT_EQ(run_recipe(), 3) << output_;
  EXPECT_TRUE(said("is 2.10.0+cpu, but this ptrain was built with 2.11.0")) << output_;
  EXPECT_TRUE(said("run scripts/setup")) << output_;
}

// What only ranks find out: the run's folder then tells the whole story.
class BadData : public RunFixture {
 protected:
  BadData() : RunFixture(PTRAIN_SHIPPED_BINARY) {}

  void expect_failed(int code, std::initializer_list<const char*> parts) {
    EXPECT_EQ(run_recipe(overrides_), code) << output_;
    for (const char* part : parts) EXPECT_TRUE(said(part)) << part << " is missing in\n" << output_;
    EXPECT_FALSE(said("a bug in ptrain")) << output_;
    EXPECT_EQ(static_cast<int>(verdict().code), code);
  }

  std::vector<std::string> overrides_;
};

TEST_F(BadData, Missing) {
  overrides_ = {"data.train=[{path: none/*.txt}]"};
  expect_failed(15, {"data.train: no file matches 'none/*.txt'", "check the path"});
}

TEST_F(BadData, Empty) {
  write("text.txt", "");
  expect_failed(15, {"data.train: ", "empty"});
}

TEST_F(BadData, Unreadable) {
  // Root reads everything, unless it gives up its pass.
  if (::geteuid() == 0) {
    ASSERT_TRUE(fs::exists("/usr/bin/setpriv")) << "install util-linux";
    prefix_ = {"/usr/bin/setpriv", "--bounding-set=-dac_override,-dac_read_search"};
  }
  fs::permissions(folder_ + "/text.txt", fs::perms::none);
  expect_failed(15, {"text.txt", "Permission denied"});
}

TEST_F(BadData, ALineThatIsNotJson) {
  write("bad.jsonl", "{\"text\": \"good\"}\n{\"text\": oops}\n");
  overrides_ = {"data.train=[{path: bad.jsonl}]"};
  expect_failed(15, {"bad.jsonl", "it is not JSON from column ", "a line is {\"text\""});
  EXPECT_FALSE(said("json.exception")) << output_;
}

TEST_F(BadData, ADamagedIndexIsBuiltAgainFromTheText) {
  ASSERT_EQ(run_command({"data", folder_ + "/recipe.yaml"}), 0) << output_;
  std::string index;
  for (const auto& entry : fs::recursive_directory_iterator(folder_ + "/cache"))
    if (entry.path().extension() == ".idx") index = entry.path();
  const std::string whole = read(index);
  std::ofstream(index) << "no index";
  EXPECT_EQ(run_command({"data", folder_ + "/recipe.yaml"}), 0) << output_;
  EXPECT_EQ(read(index), whole);
}

TEST_F(BadData, AFolderInPlaceOfAFile) {
  overrides_ = {"data.train=[{path: .}]"};
  expect_failed(15, {"is a folder", "for all files under it"});
}

TEST_F(BadData, AHomeThatCannotBeWritten) {
  environment_ = {{"XDG_CACHE_HOME", "/proc"}, {"HOME", "/proc"}};
  expect_failed(3, {"/proc", "data.cache"});
}

TEST_F(BadData, DocumentsLongerThanARowAreCutAndCounted) {
  EXPECT_EQ(run_recipe({"shapes.0.steps=4", "shapes.1.steps=2"}), 0) << output_;
  EXPECT_TRUE(said("1 of 1 documents are longer than a row and are cut")) << output_;
  const auto started = events(run::EventKind::kShapeStarted);
  ASSERT_EQ(started.size(), 2u);
  EXPECT_EQ(started[0].fields["cut_documents"], 1);
}

}  // namespace
}  // namespace ptrain
