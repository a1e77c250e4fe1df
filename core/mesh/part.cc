#include "core/mesh/part.h"

#include <fmt/format.h>

#include <utility>

#include "core/mesh/cut.h"
#include "core/mesh/divisible.h"
#include "core/mesh/spread_vocabulary.h"
#include "core/mesh/stages.h"
#include "core/model/build.h"

namespace ptrain::mesh {
namespace {

using model::Architecture;
using model::BlockKind;
using model::LayerKind;
using model::LayerSpec;
using model::ParameterSpec;
using model::Role;

// The sizes that every rank sees.
Architecture with_sizes_of_part(const Architecture& whole, const Layout& layout) {
  recipe::Model config = whole.config;
  model::Decoder decoder = whole.decoder;
  config.num_attention_heads /= layout.tp;
  config.intermediate_size /= layout.tp;
  config.vocab_size /= layout.tp;
  decoder.moe.shared_inner /= layout.tp;
  decoder.moe.inner /= layout.etp;
  if (layout.tp > 1) {
    config.num_key_value_heads =
        model::key_heads_of_rank(whole.config.num_key_value_heads, layout.tp);
    decoder.names.query_key_value.clear();
  }
  Architecture part = model::build_architecture(std::move(config), std::move(decoder),
                                                {whole.compute_dtype, layout.layer_dtypes});
  part.dtype = whole.dtype;
  part.parameters.clear();
  return part;
}

// Layers of the stages that pipeline rank `pp` holds, and the ends of the model that it shares.
Result<std::vector<bool>> held_layers(const Architecture& whole, const Layout& layout, int pp) {
  std::vector<bool> held(whole.layers.size(), false);
  PTRAIN_TRY(const auto stages, layers_of_stages(layout, static_cast<int>(held.size())));
  PTRAIN_TRY(const auto ranks, ranks_of_stages(layout));
  for (std::size_t stage = 0; stage < stages.size(); ++stage)
    for (int layer = stages[stage].begin; ranks[stage] == pp && layer < stages[stage].end; ++layer)
      held[static_cast<std::size_t>(layer)] = true;
  held.front() = held.front() || layout.spread_embedding;
  held.back() = held.back() || layout.spread_head;
  return held;
}

// The first of each run is what the layer's code looks for.
bool first_of_experts(const std::vector<ParameterSpec>& parameters, std::size_t begin, Role role) {
  for (std::size_t i = begin; i < parameters.size(); ++i)
    if (parameters[i].role == role) return false;
  return true;
}

class Assembler {
 public:
  // `sizes`: with_sizes_of_part.
  Assembler(const Architecture& whole, const Architecture& sizes, const Cutter& cutter,
            std::vector<bool> held)
      : whole_(whole),
        cutter_(cutter),
        held_(std::move(held)),
        places_(whole.parameters.size()),
        part_(sizes) {}

  Architecture assemble(model::AxisPlace tensor, const model::VocabularyPlace& embedding,
                        const model::VocabularyPlace& head) {
    part_.tensor = tensor;
    part_.embedding = embedding;
    part_.head = head;
    for (const LayerSpec& layer : whole_.layers) {
      if (holds(layer)) add_parameters(layer);
      if (layer.kind == LayerKind::kEmbedding && !holds(layer) && holds_tied_head())
        add_tied(layer);
    }
    for (const LayerSpec& layer : whole_.layers) describe(layer);
    return std::move(part_);
  }

 private:
  bool holds(const LayerSpec& layer) const { return held_[static_cast<std::size_t>(layer.index)]; }
  bool holds_tied_head() const {
    const LayerSpec& head = whole_.layers.back();
    return holds(head) && head.groups.front() == 0;
  }

  // Where each parameter of the whole has its parts.
  void add(int index, std::vector<ParameterSpec> parts) {
    auto& places = places_[static_cast<std::size_t>(index)];
    if (!places.empty()) return;  // a tied head's embedding
    for (ParameterSpec& part : parts) {
      places.push_back(static_cast<int>(part_.parameters.size()));
      part_.parameters.push_back(std::move(part));
    }
  }

  void add_parameters(const LayerSpec& layer) {
    int num_ups = 0, num_downs = 0;
    Role run = Role::kExpertUp;
    const std::size_t begin = part_.parameters.size();
    for (const int index : layer.parameters) {
      const ParameterSpec& parameter = whole_.parameters[static_cast<std::size_t>(index)];
      // What an embedding or a head does with the stream itself is for those that have it.
      const bool is_matrix = parameter.role == Role::kEmbedding || parameter.role == Role::kHead;
      if (!part_.has_stream(layer) && !is_matrix) continue;
      if (!whole_.groups[static_cast<std::size_t>(parameter.group)].experts) {
        add(index, cutter_.dense(parameter));
        continue;
      }
      if (parameter.role == Role::kExpertDown) run = Role::kExpertDown;
      const bool down = run == Role::kExpertDown;
      auto parts = cutter_.expert(parameter, down ? num_downs++ : num_ups++ / 2, down);
      for (ParameterSpec& part : parts)
        part.role = first_of_experts(part_.parameters, begin, run) ? run : Role::kExpert;
      add(index, std::move(parts));
    }
  }

  // Copies of what the head reads, and of its neighbours in the group: both ranks' buffers must be
  // alike.
  void add_tied(const LayerSpec& embedding) {
    for (const int index : embedding.parameters) {
      auto parts = cutter_.dense(whole_.parameters[static_cast<std::size_t>(index)]);
      for (ParameterSpec& part : parts) part.counts = false;
      add(index, std::move(parts));
    }
  }

  void describe(const LayerSpec& layer) {
    LayerSpec& described = part_.layers[static_cast<std::size_t>(layer.index)];
    if (!holds(layer)) {
      described = LayerSpec();
      described.index = layer.index;
      described.kind = layer.kind;
      described.held = false;
      return;
    }
    described.groups = layer.groups;
    described.parameters.clear();
    for (const int index : layer.parameters)
      for (const int place : places_[static_cast<std::size_t>(index)])
        described.parameters.push_back(place);
    if (!part_.has_stream(layer)) describe_share(described);
    if (layer.kind == LayerKind::kHead && part_.head.is_spread())
      described.segments.back().flops_per_token =
          2.0 * static_cast<double>(part_.config.hidden_size * part_.num_head_rows());
  }

  // The group of the matrix alone: a tied head's own holds what only its stage has.
  void describe_share(LayerSpec& shared) const {
    shared.stash.clear();
    const int matrix = shared.parameters.back();
    shared.groups = {part_.parameters[static_cast<std::size_t>(matrix)].group};
  }

  const Architecture& whole_;
  const Cutter cutter_;
  std::vector<bool> held_;
  std::vector<std::vector<int>> places_;
  Architecture part_;
};

// Blocks of 8-bit state are counted from a parameter's start, in a checkpoint too; Muon works on
// whole matrices.
Status check_block(const ParameterSpec& parameter) {
  if (parameter.whole_shape.empty()) return {};
  if (parameter.block != BlockKind::kMatrix && parameter.block != BlockKind::kRun) return {};
  const bool is_run = parameter.block == BlockKind::kRun;
  return fail(
      ExitCode::kUsage,
      fmt::format("layout: '{}' is split, but its optimizer must see {} whole", parameter.name,
                  is_run ? fmt::format("each {} elements", model::kRunElements) : "the matrix"),
      "set tp and etp to 1 and leave embedding and head on their stages, or take an optimizer that "
      "works on single elements, such as adamw");
}

// Streams, masters and sums are in one dtype, and so is what a tied head shares with the embedding.
Status check_dtypes(const Architecture& whole, const Layout& layout) {
  const std::vector<DType>& dtypes = layout.layer_dtypes;
  if (dtypes.empty()) return {};
  if (dtypes.size() != whole.layers.size())
    return fail(ExitCode::kUsage,
                fmt::format("layout: dtypes of {} layers, but there are {}", dtypes.size(),
                            whole.layers.size()),
                "embedding and head count as a layer each");
  for (const DType dtype : dtypes)
    if (wide_of(dtype) != whole.dtype || whole.dtype != DType::kFloat32)
      return fail(ExitCode::kUsage,
                  fmt::format("layout: a layer in {}, but sums in {}", name_of(dtype),
                              name_of(whole.dtype)),
                  "stages may be fp32 or bf16, beside precision fp32 or bf16");
  if (!whole.config.tie_word_embeddings || dtypes.front() == dtypes.back()) return {};
  return fail(ExitCode::kUsage, "layout: a tied head in another dtype than the embedding",
              "give the first and the last stage the same dtype");
}

// How many rows came for each expert from each rank: what is computed again goes by it.
void stash_arrivals(const Architecture& part, LayerSpec& layer) {
  layer.stash.push_back({.name = "arrived",
                         .elements_per_token = part.experts.size() * part.num_held_experts(),
                         .dtype = DType::kInt32,
                         .stash_class = model::StashClass::kInput,
                         .rows = model::StashRows::kCall});
}

// A rank's experts work on its part of the tokens of the tensor axis, and on rows of all etp ranks.
void share_work(const Architecture& part, LayerSpec& layer) {
  for (model::Segment& segment : layer.segments) {
    const bool is_expert = segment.name.starts_with("expert_");
    if (!is_expert && segment.name != "router") continue;
    segment.flops_per_token *= is_expert ? part.experts.etp : 1;
    segment.flops_per_token /= part.tensor.size;
  }
}

Architecture with_expert_ranks(Architecture part, const Layout& layout, int rank) {
  const ExpertCoordinates place = expert_coordinates_of(layout, rank);
  part.experts = {layout.ep, layout.etp, place.ep * layout.etp + place.etp};
  for (LayerSpec& layer : part.layers) {
    if (!layer.held || layer.kind != LayerKind::kBlock) continue;
    if (!part.decoder.experts_in(layer.index - 1)) continue;
    share_work(part, layer);
    if (part.experts.size() > 1) stash_arrivals(part, layer);
  }
  return part;
}

Architecture with_context_ranks(Architecture part, const Layout& layout, int rank) {
  const int cp_rank = coordinates_of(layout, rank).cp;
  part.ring = {layout.cp / layout.ulysses, cp_rank / layout.ulysses};
  part.ulysses = {layout.ulysses, cp_rank % layout.ulysses};
  return part;
}

bool is_whole(const Layout& layout) {
  return layout.tp * layout.pp * layout.ep * layout.etp == 1 && layout.layer_dtypes.empty();
}

Result<Architecture> part_with(const Architecture& sizes, const Architecture& whole,
                               const Layout& layout, int rank) {
  const Coordinates place = coordinates_of(layout, rank);
  PTRAIN_TRY(auto held, held_layers(whole, layout, place.pp));
  PTRAIN_TRY(const model::VocabularyPlace embedding, embedding_place_of(layout, rank));
  PTRAIN_TRY(const model::VocabularyPlace head, head_place_of(layout, rank));
  const Cutter cutter(whole, layout, rank, embedding, head);
  Architecture part = Assembler(whole, sizes, cutter, std::move(held))
                          .assemble({layout.tp, place.tp}, embedding, head);
  for (const ParameterSpec& parameter : part.parameters) PTRAIN_CHECK(check_block(parameter));
  return with_context_ranks(with_expert_ranks(std::move(part), layout, rank), layout, rank);
}

}  // namespace

Result<std::vector<Architecture>> parts_of(const Architecture& whole, const Layout& layout,
                                           std::span<const int> ranks) {
  PTRAIN_CHECK(check_divisible(whole, layout));
  PTRAIN_CHECK(check_dtypes(whole, layout));
  PTRAIN_CHECK(check_spread(whole, layout));
  std::vector<Architecture> parts;
  if (is_whole(layout)) {
    for (const int rank : ranks) parts.push_back(with_context_ranks(whole, layout, rank));
    return parts;
  }
  const Architecture sizes = with_sizes_of_part(whole, layout);
  for (const int rank : ranks) {
    PTRAIN_TRY(parts.emplace_back(), part_with(sizes, whole, layout, rank));
  }
  return parts;
}

Result<Architecture> part_of(const Architecture& whole, const Layout& layout, int rank) {
  PTRAIN_TRY(auto parts, parts_of(whole, layout, {&rank, 1}));
  return std::move(parts.front());
}

}  // namespace ptrain::mesh
