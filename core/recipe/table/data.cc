#include "core/recipe/table/rows.h"

namespace ptrain::recipe::table {
namespace {

constexpr auto in_data = [](auto& recipe, std::size_t) -> auto& { return recipe.data; };
constexpr auto in_packing = [](auto& recipe, std::size_t) -> auto& { return recipe.data.packing; };
constexpr auto in_train = [](auto& recipe, std::size_t i) -> auto& { return recipe.data.train[i]; };
constexpr auto in_held_out = [](auto& recipe, std::size_t i) -> auto& {
  return recipe.data.validation[i];
};

template <class Owner>
Field format_row(const char* path, Owner owner) {
  return choice<Owner, DataSource, Format>(
      {.path = path,
       .description = "text: a file is a document; jsonl: a line is (`text`, `prompt` and "
                      "`completion`, or `messages`); bin: tokens of nanoGPT or llm.c; megatron: "
                      "tokens and their .idx; auto: by the file's name."},
      owner, &DataSource::format,
      {{"auto", Format::kAuto},
       {"text", Format::kText},
       {"jsonl", Format::kJsonl},
       {"bin", Format::kBin},
       {"megatron", Format::kMegatron}});
}

}  // namespace

void add_data(std::vector<Field>& all) {
  append(
      all,
      row({.path = "data.tokenizer",
           .choices = {"byte", "sentencepiece", "none"},
           .unavailable = {"hf"},
           .description = "byte: tokens are the bytes of the text, and an end of document; "
                          "sentencepiece: those of `data.tokenizer_file`, and its end of sentence; "
                          "none: all files hold tokens already, and `model.vocab_size` is given."},
          in_data, &Data::tokenizer),
      row({.path = "data.tokenizer_file",
           .description = "The .model file of SentencePiece, relative to the recipe."},
          in_data, &Data::tokenizer_file),
      row({.path = "data.tokenizer_hash",
           .description = "XXH3-128 of `data.tokenizer_file`, which is refused when it is another "
                          "file; empty: what the file has. A run keeps it."},
          in_data, &Data::tokenizer_hash),
      row({.path = "data.train[].path",
           .required = true,
           .description = "A text file or a glob (wildcards are `*`, `?`, and `**` for folders of "
                          "any depth), relative to the recipe."},
          in_train, &DataSource::path),
      format_row("data.train[].format", in_train),
      row({.path = "data.train[].weight",
           .range = {0, 1000, true},
           .description = "How often each document of the source comes in an epoch, in the mean: "
                          "0.5 takes half of them, in turn; 2 takes all twice."},
          in_train, &DataSource::weight),
      row({.path = "data.validation[].path",
           .required = true,
           .description = "As in `data.train`."},
          in_held_out, &DataSource::path),
      format_row("data.validation[].format", in_held_out),
      row({.path = "data.validation_fraction",
           .range = {0, 0.5},
           .description = "Share of the training documents that is held out for validation, "
                          "where `data.validation` is not given."},
          in_data, &Data::validation_fraction),
      row({.path = "data.end_token",
           .unit = "token",
           .range = {-1, 2147483646},
           .description = "Token that ends a document in a `bin` file (50256 for GPT-2), without "
                          "which it is refused; -1: not known."},
          in_data, &Data::end_token),
      row({.path = "data.max_documents",
           .unit = "documents",
           .range = {0, 1e15},
           .description = "Use only so many documents; 0: all."},
          in_data, &Data::max_documents),
      choice<decltype(in_data), Data, LossOn>(
          {.path = "data.loss_on",
           .description =
               "What a `jsonl` document learns. answers: the `completion`, or what an "
               "assistant's messages say, or all of a `text`; all: every token. Roles of "
               "messages are system, developer, user, assistant, tool, function."},
          in_data, &Data::loss_on, {{"answers", LossOn::kAnswers}, {"all", LossOn::kAll}}),
      choice<decltype(in_packing), Packing, packing::Strategy>(
          {.path = "data.packing.strategy",
           .description = "How documents fill rows: the first two keep the order in which they "
                          "come, the third takes the longest first and wastes least."},
          in_packing, &Packing::strategy,
          {packing::kStrategies.begin(), packing::kStrategies.end()}),
      row({.path = "data.packing.window",
           .unit = "documents",
           .range = {1, 1 << 24},
           .description = "Documents that are packed into rows together."},
          in_packing, &Packing::window),
      row({.path = "data.cache",
           .description = "Folder of the token index, relative to the recipe; empty: the user's "
                          "cache folder."},
          in_data, &Data::cache));
}

}  // namespace ptrain::recipe::table
