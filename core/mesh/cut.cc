#include "core/mesh/cut.h"

namespace ptrain::mesh {
namespace {

using model::ParameterSpec;
using model::Role;

// How an axis cuts a parameter.
enum class Cut { kWhole, kRows, kColumns, kKeyValueHeads, kFused };

Cut cut_of(Role role, const model::Decoder& decoder) {
  switch (role) {
    case Role::kQuery:
    case Role::kQueryBias:
      return decoder.names.query_key_value.empty() ? Cut::kRows : Cut::kFused;
    case Role::kKeyValue:
      return Cut::kKeyValueHeads;
    case Role::kUp:
    case Role::kUpBias:
    case Role::kGated:
    case Role::kSharedUp:
    case Role::kKeyValueUp:
      return Cut::kRows;
    case Role::kOutput:
    case Role::kDown:
    case Role::kSharedDown:
      return Cut::kColumns;
    default:
      return Cut::kWhole;
  }
}

// The dim of the output features (rows), or of the input features.
std::size_t dim_of(const ParameterSpec& parameter, Cut cut) {
  const bool is_first = (cut == Cut::kRows) != parameter.transposed;
  return is_first || parameter.shape.size() == 1 ? 0 : parameter.shape.size() - 1;
}

// Output features [begin, begin + size) of a weight or bias (by rows), or input features.
ParameterSpec slice(ParameterSpec part, Cut cut, std::int64_t begin, std::int64_t size) {
  const std::size_t dim = dim_of(part, cut);
  if (part.shape[dim] == size) return part;
  part.whole_shape = part.shape;
  part.offsets.assign(part.shape.size(), 0);
  part.offsets[dim] = begin;
  part.shape[dim] = size;
  return part;
}

// Part `index` of `count` equal ones.
ParameterSpec slice_evenly(const ParameterSpec& whole, Cut cut, int index, int count) {
  const std::int64_t size = whole.shape[dim_of(whole, cut)] / count;
  return slice(whole, cut, index * size, size);
}

}  // namespace

Cutter::Cutter(const model::Architecture& whole, const Layout& layout, int rank,
               model::VocabularyPlace embedding, model::VocabularyPlace head)
    : whole_(whole),
      tp_(layout.tp),
      ep_(layout.ep),
      etp_(layout.etp),
      tp_rank_(coordinates_of(layout, rank).tp),
      expert_place_(expert_coordinates_of(layout, rank)),
      embedding_(embedding),
      head_(head),
      kv_heads_(whole.config.num_key_value_heads),
      head_dim_(whole.config.head_dim) {}

std::vector<ParameterSpec> Cutter::dense(const ParameterSpec& parameter) const {
  if (parameter.role == Role::kEmbedding) return {rows_at(parameter, embedding_)};
  if (parameter.role == Role::kHead) return {rows_at(parameter, head_)};
  if (tp_ == 1) return {parameter};
  switch (cut_of(parameter.role, whole_.decoder)) {
    case Cut::kWhole:
      return {repeated(parameter, tp_)};
    case Cut::kKeyValueHeads:
      return {key_value(parameter, 0)};
    case Cut::kFused:
      return fused(parameter);
    case Cut::kRows:
      return {slice_evenly(parameter, Cut::kRows, tp_rank_, tp_)};
    case Cut::kColumns:
      return {slice_evenly(parameter, Cut::kColumns, tp_rank_, tp_)};
  }
  return {};
}

std::vector<ParameterSpec> Cutter::expert(const ParameterSpec& parameter, int number,
                                          bool down) const {
  const int held = static_cast<int>(whole_.decoder.moe.num_experts) / ep_;
  if (number / held != expert_place_.ep) return {};
  const Cut cut = down ? Cut::kColumns : Cut::kRows;
  return {slice_evenly(parameter, cut, expert_place_.etp, etp_)};
}

std::int64_t Cutter::kv_heads() const { return model::key_heads_of_rank(kv_heads_, tp_); }

ParameterSpec Cutter::rows_at(const ParameterSpec& parameter, const model::VocabularyPlace& place) {
  const std::int64_t rows = parameter.shape.front();
  const std::int64_t begin = place.first_row(rows, place.rank);
  return slice(parameter, Cut::kRows, begin, place.first_row(rows, place.rank + 1) - begin);
}

ParameterSpec Cutter::repeated(ParameterSpec part, int sum_ranks) const {
  part.sum_ranks = sum_ranks;
  part.counts = tp_rank_ % sum_ranks == 0;
  return part;
}

// Keys or values, which begin at output feature `before` of their matrix.
ParameterSpec Cutter::key_value(const ParameterSpec& parameter, std::int64_t before) const {
  const std::int64_t first = tp_rank_ * kv_heads_ / tp_;
  const ParameterSpec part =
      slice(parameter, Cut::kRows, before + first * head_dim_, kv_heads() * head_dim_);
  return repeated(part, kv_heads_ < tp_ ? tp_ / static_cast<int>(kv_heads_) : 1);
}

std::vector<ParameterSpec> Cutter::fused(const ParameterSpec& parameter) const {
  const std::int64_t query = whole_.config.num_attention_heads * head_dim_;
  std::vector<ParameterSpec> parts = {
      slice(parameter, Cut::kRows, tp_rank_ * query / tp_, query / tp_),
      key_value(parameter, query), key_value(parameter, query + kv_heads_ * head_dim_)};
  parts[1].role = parts[2].role = Role::kKeyValue;
  return parts;
}

}  // namespace ptrain::mesh
