#include "engine/state/group_buffer.h"

#include <algorithm>

#include "engine/base/engine_error.h"
#include "engine/base/fault.h"
#include "engine/base/planted.h"
#include "engine/kernels/convert.h"
#include "engine/kernels/rows.h"

namespace ptrain::state {
namespace {

using program::MemoryClass;

Buffer zeroed(Arena& arena, MemoryClass memory_class, std::int64_t bytes) {
  Buffer buffer(arena, memory_class, bytes);
  kernels::set_zero(contiguous(buffer.data(), DType::kUInt8, 1, bytes));
  return buffer;
}

std::byte* start(const Buffer& buffer) { return static_cast<std::byte*>(buffer.data()); }

}  // namespace

GroupBuffer::GroupBuffer(const model::Architecture& architecture, const mesh::BufferPlan& plan,
                         Place place, Arena& arena)
    : architecture_(architecture),
      plan_(plan),
      place_(place),
      arena_(arena),
      dtype_(architecture.dtype),
      compute_dtype_(architecture.groups[static_cast<std::size_t>(plan.group)].compute_dtype),
      runs_(plan.runs(place.shard_rank)),
      state_plan_(mesh::plan_state(architecture, runs_)),
      written_(plan.placements.size()) {
  for (int rank = 0; rank < plan_.num_ranks(); ++rank)
    shard_offsets_.push_back(plan_.shard_offset(rank));
  const std::int64_t shard = bytes(shard_size());
  if (place_.shared_parameters == nullptr || copies_masters())
    master_ = zeroed(arena, MemoryClass::kParameters, shard);
  if (copies_masters() && !is_sharded())
    computed_ = zeroed(arena, MemoryClass::kParameters, shard_size() * size_of(compute_dtype_));
  if (!place_.offloads_state) state_ = zeroed(arena, MemoryClass::kOptimizer, state_plan_.bytes);
  if (place_.shard_gradients)
    shard_gradients_ = zeroed(arena, MemoryClass::kGradients, shard);
  else if (place_.shared_gradients == nullptr)
    whole_gradients_ = zeroed(arena, MemoryClass::kGradients, bytes(plan_.total()));
}

bool GroupBuffer::counts(const mesh::ShardRun& run) const {
  const auto& group = architecture_.groups[static_cast<std::size_t>(plan_.group)];
  if (group.experts && planted(Bug::kNormWithoutExperts)) return false;
  return place_.counts && architecture_.parameters[static_cast<std::size_t>(run.parameter)].counts;
}

bool GroupBuffer::is_balance(const mesh::ShardRun& run) const {
  return architecture_.parameters[static_cast<std::size_t>(run.parameter)].rule ==
         model::UpdateRule::kBalance;
}

Tensor GroupBuffer::own_shard(std::byte* whole, DType dtype) const {
  const std::int64_t offset = shard_offsets_[static_cast<std::size_t>(place_.shard_rank)];
  return contiguous(whole + offset * size_of(dtype), dtype, 1, shard_size());
}

void GroupBuffer::copy_masters(std::byte* whole) const {
  kernels::convert(contiguous(master_.data(), dtype_, 1, shard_size()),
                   own_shard(whole, compute_dtype_));
}

void GroupBuffer::publish_masters() {
  if (!copies_masters()) return;
  if (place_.shared_parameters != nullptr) return copy_masters(place_.shared_parameters);
  if (!is_sharded()) copy_masters(start(computed_));
}

void publish_masters(std::span<GroupBuffer> groups) {
  for (GroupBuffer& group : groups) group.publish_masters();
}

std::byte* GroupBuffer::open_whole() {
  if (!is_sharded()) return start(copies_masters() ? computed_ : master_);
  PT_CHECK(!is_open_);
  is_open_ = true;
  if (place_.shared_parameters != nullptr) return place_.shared_parameters;
  whole_ = Buffer(arena_, MemoryClass::kGather, plan_.total() * size_of(compute_dtype_));
  copy_masters(start(whole_));
  return start(whole_);
}

void GroupBuffer::close_whole() {
  is_open_ = false;
  whole_ = Buffer();
}

std::size_t GroupBuffer::placement_index(int parameter) const {
  const auto found = std::find_if(plan_.placements.begin(), plan_.placements.end(),
                                  [&](const auto& entry) { return entry.parameter == parameter; });
  PT_CHECK(found != plan_.placements.end());
  return static_cast<std::size_t>(found - plan_.placements.begin());
}

Tensor GroupBuffer::matrix(const Tensor& whole, int parameter) const {
  const mesh::ParameterPlacement& place = placement(parameter);
  const auto& shape = architecture_.parameters[static_cast<std::size_t>(parameter)].shape;
  const std::int64_t rows = shape.size() > 1 ? shape.front() : 1;
  return contiguous(whole.columns(place.offset, 0).data, whole.dtype, rows, place.elements / rows);
}

Tensor GroupBuffer::parameter(int parameter) const {
  PT_CHECK(!is_sharded() || is_open_);
  const Buffer& own = is_sharded() ? whole_ : copies_masters() ? computed_ : master_;
  std::byte* whole = place_.shared_parameters != nullptr ? place_.shared_parameters : start(own);
  return matrix(contiguous(whole, compute_dtype_, 1, plan_.total()), parameter);
}

Tensor GroupBuffer::gradient(int parameter) {
  return matrix(contiguous(whole_gradients(), dtype_, 1, plan_.total()), parameter);
}

void GroupBuffer::fill_gradients() {
  for (std::size_t i = 0; i < written_.size(); ++i)
    if (!written_[i]) kernels::set_zero(gradient(plan_.placements[i].parameter));
  written_.assign(written_.size(), true);
}

void GroupBuffer::clear_gradients() {
  written_.assign(plan_.placements.size(), false);
  shard_written_ = false;
}

std::byte* GroupBuffer::whole_gradients() {
  if (place_.shared_gradients != nullptr) return place_.shared_gradients;
  if (!whole_gradients_)
    whole_gradients_ = Buffer(arena_, MemoryClass::kGradients, bytes(plan_.total()));
  return start(whole_gradients_);
}

void GroupBuffer::take_reduced() {
  fault::point("train.reduce.take");
  if (!place_.shard_gradients) return;
  const Tensor reduced = reduced_shard();
  const Tensor shard = contiguous(shard_gradients_.data(), dtype_, 1, reduced.cols);
  if (shard_written_)
    kernels::add(reduced, shard);
  else
    kernels::convert(reduced, shard);
  shard_written_ = true;
  written_.assign(plan_.placements.size(), false);
  whole_gradients_ = Buffer();
}

void GroupBuffer::add_earlier() {
  if (!shard_written_) return;
  const Tensor reduced = reduced_shard();
  kernels::add(contiguous(shard_gradients_.data(), dtype_, 1, reduced.cols), reduced);
  shard_written_ = false;
}

std::byte* GroupBuffer::shard_gradients() {
  if (place_.shard_gradients) return start(shard_gradients_);
  return at(whole_gradients(), shard_offsets_[static_cast<std::size_t>(place_.shard_rank)]);
}

Tensor GroupBuffer::reduced_shard() { return own_shard(whole_gradients(), dtype_); }

Tensor GroupBuffer::piece(std::byte* shard, const mesh::ShardRun& run) const {
  return contiguous(at(shard, run.shard_offset), dtype_, 1, run.end - run.begin);
}

std::byte* GroupBuffer::master_start() const {
  if (master_) return start(master_);
  return static_cast<std::byte*>(own_shard(place_.shared_parameters, dtype_).data);
}

Tensor GroupBuffer::master(const mesh::ShardRun& run) const { return piece(master_start(), run); }
Tensor GroupBuffer::gradient(const mesh::ShardRun& run) { return piece(shard_gradients(), run); }

const std::vector<mesh::StatePiece>& GroupBuffer::state_pieces(const mesh::ShardRun& run) const {
  const auto found = std::find(runs_.begin(), runs_.end(), run);
  PT_CHECK(found != runs_.end());
  return state_plan_.pieces[static_cast<std::size_t>(found - runs_.begin())];
}

Tensor GroupBuffer::state(const mesh::StatePiece& piece) const {
  std::byte* state = place_.offloads_state ? placed_state_ : start(state_);
  PT_CHECK(state != nullptr);
  return contiguous(state + piece.offset, piece.tensor.dtype, 1, piece.values);
}

}  // namespace ptrain::state
