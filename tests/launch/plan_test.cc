// `ptrain plan` as a user gives it: its forms agree with each other, and say where figures and
// lengths come from.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>

#include "core/data/lengths.h"
#include "core/program/action.h"
#include "tests/launch/run_fixture.h"

namespace ptrain {
namespace {

namespace fs = std::filesystem;

class PlanCommand : public RunFixture {
 protected:
  PlanCommand() : RunFixture(PTRAIN_TEST_BINARY) {}

  // What it prints as data; what it says to people is in said_.
  std::string plan(const std::string& arguments, int code = 0) {
    const std::string talk = folder_ + "/talk";
    const auto ended = base::run_to_end(
        {{"/bin/sh", "-c",
          binary_ + " plan " + folder_ + "/recipe.yaml " + arguments + " 2>" + talk},
         environment_});
    EXPECT_TRUE(ended);
    said_ = read(talk);
    EXPECT_EQ(ended->status.code, code) << said_;
    return ended->output;
  }
  nlohmann::json plan_json(const std::string& arguments = "") {
    return nlohmann::json::parse(plan("--json " + arguments));
  }

  std::string said_;
};

// Two ranks, 4 rows of the short shape and 2 of the long. Short: of two rows a rank micro-batches
// of 1 or 2, each with three kinds of recomputation: 6 layouts of dp 2, 18 of shard 2 with its
// three zeros. Long: 3 and 9. Bounds rule some of them out before they are whole. The four other
// choices of degrees are not what is asked for.
TEST_F(PlanCommand, ListsEveryLayoutOnce) {
  const std::string over_data_ranks =
      "parallel.dp=auto parallel.shard=auto parallel.tp=1 parallel.pp=1 parallel.cp.ring=1 "
      "parallel.cp.ulysses=1";
  const auto planned = plan_json(over_data_ranks);
  EXPECT_EQ(planned["version"], 1);
  EXPECT_EQ(planned["recipe"], "launched");
  EXPECT_EQ(planned["cluster"], "test");
  EXPECT_EQ(planned["num_ranks"], 2);
  const std::string text = plan("--explain " + over_data_ranks);
  const std::regex out("  out: (\\d+) x [^\n]*"), row("  \\d+ +[^\n]*ms[^\n]*");
  std::size_t in_text = 0, in_json = 0;
  for (std::sregex_iterator it(text.begin(), text.end(), row), end; it != end; ++it) ++in_text;
  for (std::sregex_iterator it(text.begin(), text.end(), out), end; it != end; ++it)
    in_text += std::stoul((*it)[1]);
  const std::size_t legal[] = {24, 12};
  ASSERT_EQ(planned["shapes"].size(), 2u);
  for (std::size_t s = 0; s < 2; ++s) {
    const auto& shape = planned["shapes"][s];
    std::set<std::string> names;
    for (const auto& one : shape["ranked"]) names.insert(one["layout"].get<std::string>());
    EXPECT_EQ(names.size(), shape["ranked"].size()) << shape["name"];
    std::size_t refused = 0;
    for (const auto& one : shape["rejected"]) refused += one["count"].get<std::size_t>();
    EXPECT_GE(refused, 4u) << shape["name"];
    const auto& search = shape["search"];
    EXPECT_EQ(search["degrees"], 2);
    EXPECT_GE(search["layouts"], names.size());
    EXPECT_LE(search["layouts"], legal[s]);
    EXPECT_EQ(search["left"], 0);
    in_json += names.size() + refused;
  }
  EXPECT_EQ(in_text, in_json) << text;
}

// It is all there without being asked for.
TEST_F(PlanCommand, JsonExplains) {
  const auto planned = plan_json();
  EXPECT_EQ(plan_json("--explain"), planned);
  const std::string text = plan("--explain");
  EXPECT_NE(text.find(planned["order"]), std::string::npos) << text;
  for (const auto& shape : planned["shapes"]) {
    ASSERT_FALSE(shape["rejected"].empty());
    for (const auto& out : shape["rejected"])
      EXPECT_NE(text.find(out["reason"].get<std::string>() + " (nearest: "), std::string::npos);
    EXPECT_NE(text.find(shape["why"]), std::string::npos);
  }
}

// What --json says of a rank's program is what --program prints, and that is read back whole.
TEST_F(PlanCommand, PrintsProgramsThatAreReadBack) {
  const auto planned = plan_json();
  const std::string text = plan("--program 1");
  const std::size_t second = text.find("\nprogram ") + 1;
  ASSERT_NE(second, 0u);
  const std::string texts[] = {text.substr(0, second), text.substr(second)};
  for (std::size_t s = 0; s < 2; ++s) {
    const auto program = program::program_from_text(texts[s]);
    ASSERT_TRUE(program) << program.error().message;
    EXPECT_EQ(program->rank, 1);
    EXPECT_EQ(program->shape, planned["shapes"][s]["name"]);
    EXPECT_EQ(program::to_text(*program), texts[s]);
    EXPECT_EQ(program::class_hash(*program), planned["shapes"][s]["program_hash"]);
  }
  EXPECT_EQ(plan("--program 2", 2), "");
  EXPECT_NE(said_.find("the plan has 2 ranks"), std::string::npos) << said_;
}

TEST_F(PlanCommand, TheClusterOfTheCommandGoesFirst) {
  write("other.yaml", "name: other\nnodes: [{name: far, cores: 8, memory_gib: 64}]\n");
  const auto planned = plan_json("--cluster " + folder_ + "/other.yaml");
  EXPECT_EQ(planned["cluster"], "other");
  EXPECT_NE(planned["figures"].get<std::string>().find("assumed"), std::string::npos);
  EXPECT_NE(said_.find("assumed figures"), std::string::npos) << said_;
  EXPECT_EQ(plan_json("--cluster two-cores.yaml")["cluster"], "two-cores");  // an installed one
  EXPECT_EQ(plan("--cluster " + folder_ + "/none.yaml", 2), "");
  EXPECT_NE(said_.find("none.yaml"), std::string::npos) << said_;
  EXPECT_EQ(plan("--probe", 2), "");
  EXPECT_NE(said_.find("a cluster file is given"), std::string::npos) << said_;
}

// Without a cluster file this machine is probed. A probe that fails costs the figures, not the
// plan, and leaves nothing that looks like one.
TEST_F(PlanCommand, AProbeThatFailsIsSaid) {
  write("mpirun",
        "#!/bin/sh\n"
        "[ \"$1\" = --version ] && echo 'mpirun (Open MPI) 4.1.4' && exit\n"
        "echo no such fabric; echo more; exit 1\n");
  fs::permissions(folder_ + "/mpirun", fs::perms::owner_all);
  environment_.emplace_back("PATH", folder_ + ":/usr/bin:/bin");
  const auto planned = plan_json("cluster.file=\\'\\'");
  EXPECT_NE(said_.find("the probe of this machine failed: no such fabric\n"), std::string::npos)
      << said_;
  EXPECT_NE(planned["figures"].get<std::string>().find("assumed"), std::string::npos);
  for (const auto& entry : fs::recursive_directory_iterator(folder_ + "/cache"))
    EXPECT_FALSE(entry.is_regular_file()) << entry.path();
}

// Lengths that the engine has left change what attention costs; those that are damaged are named.
TEST_F(PlanCommand, ReadsTheLengthsOfTheTexts) {
  const auto without = plan_json();
  EXPECT_EQ(without["documents"],
            "every row counted as one document, since no token index of its texts has been made "
            "(`ptrain data` makes it)");
  const auto data =
      base::run_to_end({{PTRAIN_SHIPPED_BINARY, "data", folder_ + "/recipe.yaml"}, environment_});
  ASSERT_TRUE(data);
  ASSERT_EQ(data->status.code, 0) << data->output;
  EXPECT_EQ(plan_json()["documents"],
            "rows packed as when last indexed: 100 % of 'short', 100 % of 'long' filled");
  recipe::Data texts;
  texts.train = {{"text.txt"}};
  const std::string path =
      folder_ + "/cache/ptrain/index/" + data::lengths_name(texts, fs::canonical(folder_));
  ASSERT_TRUE(fs::exists(path));
  // Eight tokens a document: of 64 in a block eight pairs a token are left.
  std::ofstream(path) << data::to_text({"hash", {{{8, 1000}}}});
  const auto with = plan_json();
  const auto forward_s = [](const nlohmann::json& planned) {
    return planned["shapes"][0]["ranked"][0]["terms_s"]["forward"].get<double>();
  };
  EXPECT_NE(forward_s(with), forward_s(without));
  std::ofstream(path) << "[[[";
  EXPECT_EQ(forward_s(plan_json()), forward_s(without));
  EXPECT_NE(said_.find(path + " is not used: "), std::string::npos) << said_;
}

}  // namespace
}  // namespace ptrain
