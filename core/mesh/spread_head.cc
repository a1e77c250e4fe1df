#include "core/mesh/spread_head.h"

#include <fmt/format.h>

#include "core/mesh/stages.h"

namespace ptrain::mesh {

Result<model::HeadPlace> head_place_of(const Layout& layout, int rank) {
  const Coordinates place = coordinates_of(layout, rank);
  if (!layout.spread_head) return model::HeadPlace{layout.tp, place.tp, 0, layout.tp};
  PTRAIN_TRY(const auto ranks, ranks_of_stages(layout));
  return model::HeadPlace{layout.pp * layout.tp, place.pp * layout.tp + place.tp,
                          ranks.back() * layout.tp, layout.tp};
}

Status check_spread_head(const model::Architecture& whole, const Layout& layout) {
  if (!layout.spread_head) return {};
  const auto refuse = [](std::string why, std::string remedy) {
    return fail(ExitCode::kUsage, "layout: the head cannot be spread over all stages: " + why,
                std::move(remedy));
  };
  const std::string elsewhere = "leave it on the last stage (parallel.head: last_stage)";
  if (layout.pp == 1) return refuse("pp is 1, so there is one rank of stages", elsewhere);
  if (whole.config.tie_word_embeddings)
    return refuse("its matrix is the embedding's too, which the first stage holds whole",
                  elsewhere + ", or untie them (model.tie_word_embeddings: false)");
  const std::int64_t vocabulary = whole.config.vocab_size;
  if (vocabulary < layout.pp * layout.tp)
    return refuse(fmt::format("a vocabulary of {} has fewer rows than pp x tp, {}, ranks",
                              vocabulary, layout.pp * layout.tp),
                  elsewhere);
  return {};
}

}  // namespace ptrain::mesh
