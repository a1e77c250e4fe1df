#include "core/program/gradient_places.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>
#include <set>

#include "core/base/divide.h"
#include "core/program/compile.h"

namespace ptrain::program {
namespace {

constexpr std::int64_t kAlignment = 16;  // elements: 64 bytes of float32

// From here on a further micro-batch repeats the one before.
constexpr std::int64_t kMicroBatches = 3;

// By group: the others that hold whole gradients at some time when it does. A group meets few.
using Meetings = std::vector<std::set<int>>;

void mark_pairs(const std::set<int>& held, Meetings& meetings) {
  for (const int a : held)
    for (const int b : held)
      if (a != b) meetings[static_cast<std::size_t>(a)].insert(b);
}

// Gradients of a group without shards are there all the time.
void mark_lasting(const MemoryContext& context, Meetings& meetings) {
  for (const mesh::BufferPlan& plan : context.buffers) {
    if (mesh::shards_gradients(context.group(plan.group), context.layout)) continue;
    for (const mesh::BufferPlan& other : context.buffers) {
      if (other.group == plan.group) continue;
      meetings[static_cast<std::size_t>(plan.group)].insert(other.group);
      meetings[static_cast<std::size_t>(other.group)].insert(plan.group);
    }
  }
}

// Nothing where all groups hold theirs at once.
std::optional<Meetings> find_meetings(const MemoryContext& context) {
  const mesh::Layout& layout = context.layout;
  if (!layout.shards_gradients()) return std::nullopt;
  mesh::Layout taken = layout;  // as if every buffer were taken and given back
  taken.shared_window = false;
  taken.num_micro_batches = std::min(taken.num_micro_batches, kMicroBatches);
  const auto program = compile({context.architecture, taken, "", Purpose::kTrain}, 0);
  if (!program) return std::nullopt;
  Meetings meetings(context.buffers.size());
  mark_lasting(context, meetings);
  MemoryMeter meter({context.architecture, taken, context.buffers, context.sequence});
  for (const Action& action : program->actions) {
    meter.begin(action);
    if (action.kind == Kind::kBackward) mark_pairs(meter.held_gradients(), meetings);
    meter.end(action);
  }
  return meetings;
}

struct Place {
  std::int64_t begin;
  std::int64_t end;
};

// The lowest offset at which `size` elements touch none of `others`.
std::int64_t first_gap(std::vector<Place> others, std::int64_t size) {
  std::sort(others.begin(), others.end(),
            [](const Place& a, const Place& b) { return a.begin < b.begin; });
  std::int64_t offset = 0;
  for (const Place& other : others) {
    if (offset + size <= other.begin) break;
    offset = std::max(offset, other.end);
  }
  return offset;
}

std::int64_t aligned_size(const mesh::BufferPlan& buffer) {
  return round_up(buffer.total(), kAlignment);
}

}  // namespace

// The largest first: the small ones then fit beside them.
GradientPlaces place_gradients(const MemoryContext& context) {
  const auto meetings = find_meetings(context);
  std::vector<std::size_t> order(context.buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::size_t group) { return context.buffers[group].total(); });
  GradientPlaces places;
  places.offsets.resize(order.size());
  std::vector<std::optional<Place>> placed(order.size());
  for (const std::size_t group : order) {
    const std::int64_t size = aligned_size(context.buffers[group]);
    std::int64_t offset = places.elements;  // behind all others
    if (meetings) {
      std::vector<Place> others;
      for (const int other : (*meetings)[group])
        if (const auto& place = placed[static_cast<std::size_t>(other)]) others.push_back(*place);
      offset = first_gap(std::move(others), size);
    }
    placed[group] = {offset, offset + size};
    places.offsets[group] = offset;
    places.elements = std::max(places.elements, offset + size);
  }
  return places;
}

}  // namespace ptrain::program
