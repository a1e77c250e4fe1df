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

// What may be spread, in the recipe's words: parallel.NAME is STAGE_stage or all_stages.
struct End {
  const char* name;
  const char* stage;
  bool is_spread;
};

Status check_end(const model::Architecture& whole, const Layout& layout, const End& end,
                 const End& other) {
  const auto refuse = [&](std::string why, std::string remedy) {
    return fail(ExitCode::kUsage,
                fmt::format("layout: the {} cannot be spread over all stages: {}", end.name, why),
                std::move(remedy));
  };
  const std::string elsewhere = fmt::format("leave it on the {} stage (parallel.{}: {}_stage)",
                                            end.stage, end.name, end.stage);
  if (layout.pp == 1) return refuse("pp is 1, so there is one rank of stages", elsewhere);
  if (whole.config.tie_word_embeddings && !other.is_spread)
    return refuse(fmt::format("its matrix is the {}'s too, which the {} stage holds whole",
                              other.name, other.stage),
                  fmt::format("{}, spread both (parallel.{}: all_stages), or untie them "
                              "(model.tie_word_embeddings: false)",
                              elsewhere, other.name));
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
  const End embedding{"embedding", "first", layout.spread_embedding};
  const End head{"head", "last", layout.spread_head};
  if (embedding.is_spread) PTRAIN_CHECK(check_end(whole, layout, embedding, head));
  if (head.is_spread) PTRAIN_CHECK(check_end(whole, layout, head, embedding));
  return {};
}

}  // namespace ptrain::mesh
