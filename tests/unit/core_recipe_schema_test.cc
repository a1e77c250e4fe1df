#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "core/recipe/field.h"
#include "core/recipe/schema.h"

namespace ptrain::recipe {
namespace {

using nlohmann::json;

json properties(const json& section) {
  return (section.contains("anyOf") ? section["anyOf"][1] : section)["properties"];
}

TEST(Schema, IsTheFile) {
  const char* source = std::getenv("PTRAIN_SOURCE_DIR");
  const std::string path =
      std::string(source == nullptr ? "." : source) + "/configs/recipe.schema.json";
  if (std::getenv("PTRAIN_BLESS") != nullptr) std::ofstream(path) << recipe_schema();
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(text, recipe_schema()) << "run unit_core_recipe with PTRAIN_BLESS=1";
}

TEST(Schema, SaysWhatTheTableSays) {
  const json top = json::parse(recipe_schema());
  EXPECT_EQ(top["additionalProperties"], false);
  const json fields = properties(top);
  EXPECT_EQ(fields["parallel"]["anyOf"][0]["const"], "auto");
  const json parallel = properties(fields["parallel"]);
  EXPECT_EQ(parallel["zero"]["anyOf"][0],
            json({{"type", "integer"}, {"minimum", 1}, {"maximum", 3}}));
  EXPECT_EQ(parallel["zero"]["anyOf"][1]["enum"], json({"auto"}));
  EXPECT_EQ(properties(parallel["cp"])["ring"]["anyOf"][0]["maximum"], 1 << 20);
  EXPECT_FALSE(parallel.contains("order"));  // a later version's
  EXPECT_EQ(properties(fields["cluster"])["nodes"]["const"], 1);  // that 1 says happens anyway
  const json betas = properties(fields["optimizer"])["betas"];
  EXPECT_EQ(betas["items"].size(), 2u);
  EXPECT_EQ(betas["maxItems"], 2);
  EXPECT_EQ(fields["shapes"]["type"], "array");
  EXPECT_EQ(fields["shapes"]["items"]["properties"]["sequence"]["type"], "integer");
  EXPECT_EQ(properties(fields["cluster"])["nodes"]["const"], 1);
  EXPECT_FALSE(fields["model"].contains("required"));  // its fields may stand in its file
}

}  // namespace
}  // namespace ptrain::recipe
