#include <fmt/format.h>
#include <stdlib.h>

#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/engine_module.h"
#include "cli/output.h"
#include "cli/survey_text.h"
#include "core/data/index_format.h"
#include "core/packing/random.h"
#include "core/packing/survey.h"
#include "core/recipe/source_weights.h"
#include "core/run/directory.h"
#include "core/run/json_fields.h"
#include "core/run/request.h"
#include "launcher/base/file.h"
#include "launcher/base/plan_file.h"
#include "launcher/recipe/reader.h"

namespace ptrain::cli {

namespace {

namespace fs = std::filesystem;
using Lengths = std::vector<std::int64_t>;

constexpr std::size_t kMostBytes = std::size_t{1} << 36;
constexpr std::int64_t kLongestDocument = std::int64_t{1} << 40;

// Whole numbers, one a line; blank lines are passed over.
Result<Lengths> read_lengths(const std::string& path) {
  PTRAIN_TRY(const std::string text, read_file(path, kMostBytes));
  Lengths lengths;
  int line = 1;
  for (std::size_t begin = 0; begin < text.size(); ++line) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view word(text.data() + begin, end - begin);
    begin = end + 1;
    if (word.ends_with('\r')) word.remove_suffix(1);
    if (word.empty()) continue;
    std::int64_t length = -1;
    const auto [stop, error] = std::from_chars(word.data(), word.data() + word.size(), length);
    if (error != std::errc() || stop != word.data() + word.size() || length < 0 ||
        length > kLongestDocument)
      return fail(ExitCode::kUsage, "not a length in tokens",
                  "write one whole number from 0 to 2^40 a line", {path, line, 1});
    lengths.push_back(length);
  }
  if (lengths.empty())
    return fail(ExitCode::kUsage, path + " holds no length", "write one whole number a line");
  return lengths;
}

Result<ExitCode> survey_lengths(const DataArguments& arguments) {
  if (arguments.capacity < 1)
    return fail(ExitCode::kUsage, "--lengths needs --capacity, the tokens of a row",
                "give e.g. --capacity 4096");
  PTRAIN_TRY(const Lengths lengths, read_lengths(arguments.lengths));
  const auto survey = packing::survey(lengths, arguments.capacity);
  if (arguments.json) {
    print(to_json(survey).dump(1) + "\n");
  } else {
    print_line(histogram_text(survey) + "\n" + to_text(survey));
  }
  return ExitCode::kDone;
}

// A folder of this command alone, gone with it.
class Scratch {
 public:
  static Result<Scratch> make() {
    std::error_code error;
    std::string path = (fs::temp_directory_path(error) / "ptrain-data-XXXXXX").string();
    if (error || ::mkdtemp(path.data()) == nullptr)
      return fail(ExitCode::kEnvironment, "cannot make a folder for temporary files",
                  "set TMPDIR to a folder that you can write");
    return Scratch(path);
  }
  Scratch(Scratch&& other) noexcept : path_(std::exchange(other.path_, "")) {}
  Scratch& operator=(Scratch&&) = delete;
  ~Scratch() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit Scratch(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Has the engine, in this process, build what is missing of the token index; what it says of it.
Result<nlohmann::json> prepare(const recipe::LoadedRecipe& loaded, ExitCode& code) {
  PTRAIN_TRY(const Scratch scratch, Scratch::make());
  run::Plan plan;
  plan.recipe = loaded.recipe;
  plan.recipe_folder = loaded.folder;
  // The engine reads a plan; to read data it takes one process, a row at a time.
  plan.ranks.push_back({});
  for (const auto& shape : loaded.recipe.shapes) {
    run::ShapePlan& planned = plan.shapes.emplace_back();
    planned.name = shape.name;
    planned.layout.num_micro_batches = shape.global_batch_tokens / shape.sequence;
  }
  PTRAIN_CHECK(write_plan(run::Directory{scratch.path()}.plan(), plan));
  run::Request request;
  request.mode = run::Mode::kData;
  request.run_directory = scratch.path();
  request.output = scratch.path() + "/index.json";
  PTRAIN_TRY(const int status, run_engine(request));
  code = static_cast<ExitCode>(status);
  if (code != ExitCode::kDone) return nlohmann::json();  // the engine has said why
  PTRAIN_TRY(const std::string text, read_file(request.output, kMostBytes));
  return run::parse_json(text, request.output);
}

// The targets of each training document, in the order of the first epoch, weights considered.
Result<Lengths> lengths_in_order(const std::string& index, const recipe::Recipe& recipe) {
  PTRAIN_TRY(const std::string bytes, read_file(index + ".idx", kMostBytes));
  PTRAIN_TRY(const data::IndexTable table,
             data::index_from_bytes(std::as_bytes(std::span(bytes))).map_error([&](Error error) {
               error.message = fmt::format("{}.idx: {}", index, error.message);
               error.hint = "remove it; it is then built again from the text";
               return error;
             }));
  Lengths lengths;
  for (const auto document : packing::weighted_order(
           recipe.seed, 0,
           packing::sources_from(table.sources, recipe::source_weights(recipe.data)))) {
    const auto d = static_cast<std::size_t>(document);
    lengths.push_back(table.begin[d + 1] - table.begin[d] - 1);
  }
  return lengths;
}

std::string index_text(const char* side, const nlohmann::json& index) {
  return fmt::format("{}: {} documents, {} tokens, in {}\n", side,
                     index.at("documents").get<std::int64_t>(),
                     index.at("tokens").get<std::int64_t>(), index.at("index").get<std::string>());
}

Result<ExitCode> survey_recipe(const DataArguments& arguments) {
  PTRAIN_TRY(const auto loaded, recipe::read_recipe(arguments.recipe, arguments.overrides));
  ExitCode code = ExitCode::kDone;
  PTRAIN_TRY(nlohmann::json result, prepare(loaded, code));
  if (code != ExitCode::kDone) return code;
  PTRAIN_TRY(const Lengths lengths,
             lengths_in_order(result.at("train").at("index").get<std::string>(), loaded.recipe));
  std::string text;
  for (const char* side : {"train", "validation"})
    if (result.contains(side)) text += index_text(side, result[side]);
  if (const auto skipped = result.at("skipped_files").get<std::int64_t>(); skipped > 0)
    text += fmt::format("files left out, empty or not regular: {}\n", skipped);
  for (const auto& shape : loaded.recipe.shapes) {
    const auto survey = packing::survey(lengths, shape.sequence, loaded.recipe.data.packing.window);
    if (&shape == &loaded.recipe.shapes.front()) text += "\n" + histogram_text(survey);
    text += fmt::format("\n{}: {}", shape.name, to_text(survey));
    result["shapes"][shape.name] = to_json(survey);
  }
  if (arguments.json) {
    print(result.dump(1) + "\n");
  } else {
    print_line(text);
  }
  return ExitCode::kDone;
}

}  // namespace

Result<ExitCode> cmd_data(const DataArguments& arguments) {
  if (arguments.recipe.empty() == arguments.lengths.empty())
    return fail(ExitCode::kUsage, "data: give either a recipe or --lengths FILE",
                "such as `ptrain data recipe.yaml`");
  return arguments.recipe.empty() ? survey_lengths(arguments) : survey_recipe(arguments);
}

}  // namespace ptrain::cli
