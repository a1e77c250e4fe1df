#include "core/mesh/spread_vocabulary.h"

#include <fmt/format.h>

#include "core/mesh/stages.h"

namespace ptrain::mesh {
namespace {

// `stage_rank`: of the stage that has the stream.
model::VocabularyPlace spread_place(const Layout& layout, int rank, int stage_rank) {
  const Coordinates place = coordinates_of(layout, rank);
  return {layout.pp * layout.tp, place.pp * layout.tp + place.tp, stage_rank * layout.tp,
          layout.tp};
}

model::VocabularyPlace tensor_place(const Layout& layout, int rank) {
  return {layout.tp, coordinates_of(layout, rank).tp, 0, layout.tp};
}

// What may be spread, in the recipe's words.
struct End {
  const char* name;
  const char* stage;        // that has it otherwise
  const char* elsewhere;    // how to leave it there
  const char* other;        // what a tied model has as the same matrix
  const char* other_stage;  // that has this
  const char* both;         // how to spread the other one too
};
constexpr End kEmbedding{"embedding", "first", "parallel.embedding: first_stage",
                         "head",      "last",  "parallel.head: all_stages"};
constexpr End kHead{"head",      "last",  "parallel.head: last_stage",
                    "embedding", "first", "parallel.embedding: all_stages"};

Status check_end(const model::Architecture& whole, const Layout& layout, const End& end,
                 bool is_alone) {
  const auto refuse = [&](std::string why, std::string remedy) {
    return fail(ExitCode::kUsage,
                fmt::format("layout: the {} cannot be spread over all stages: {}", end.name, why),
                std::move(remedy));
  };
  const std::string elsewhere =
      fmt::format("leave it on the {} stage ({})", end.stage, end.elsewhere);
  if (layout.pp == 1) return refuse("pp is 1, so there is one rank of stages", elsewhere);
  if (whole.config.tie_word_embeddings && is_alone)
    return refuse(fmt::format("its matrix is the {}'s too, which the {} stage holds whole",
                              end.other, end.other_stage),
                  fmt::format("{}, spread both ({}), or untie them (model.tie_word_embeddings: "
                              "false)",
                              elsewhere, end.both));
  const std::int64_t vocabulary = whole.config.vocab_size;
  if (vocabulary < layout.pp * layout.tp)
    return refuse(fmt::format("a vocabulary of {} has fewer rows than pp x tp, {}, ranks",
                              vocabulary, layout.pp * layout.tp),
                  elsewhere);
  return {};
}

}  // namespace

Result<model::VocabularyPlace> embedding_place_of(const Layout& layout, int rank) {
  if (!layout.spread_embedding) return tensor_place(layout, rank);
  PTRAIN_TRY(const auto ranks, ranks_of_stages(layout));
  return spread_place(layout, rank, ranks.front());
}

Result<model::VocabularyPlace> head_place_of(const Layout& layout, int rank) {
  if (!layout.spread_head) return tensor_place(layout, rank);
  PTRAIN_TRY(const auto ranks, ranks_of_stages(layout));
  return spread_place(layout, rank, ranks.back());
}

Status check_spread(const model::Architecture& whole, const Layout& layout) {
  if (layout.spread_embedding)
    PTRAIN_CHECK(check_end(whole, layout, kEmbedding, !layout.spread_head));
  if (layout.spread_head) PTRAIN_CHECK(check_end(whole, layout, kHead, !layout.spread_embedding));
  return {};
}

}  // namespace ptrain::mesh
