#include "core/program/gradient_places.h"

#include <algorithm>
#include <numeric>

#include "core/program/compile.h"

namespace ptrain::program {
namespace {

constexpr std::int64_t kAlignment = 16;  // elements: 64 bytes of float32

// From here on a further micro-batch repeats the one before.
constexpr std::int64_t kMicroBatches = 3;

// together[a][b]: at some time both groups hold whole gradients.
using Together = std::vector<std::vector<bool>>;

void mark_pairs(const MemoryMeter& meter, Together& together) {
  const int num_groups = static_cast<int>(together.size());
  std::vector<int> held;
  for (int group = 0; group < num_groups; ++group)
    if (meter.holds_gradients(group)) held.push_back(group);
  for (const int a : held)
    for (const int b : held)
      together[static_cast<std::size_t>(a)][static_cast<std::size_t>(b)] = true;
}

Together find_together(const MemoryContext& context) {
  const std::size_t num_groups = context.buffers.size();
  const mesh::Layout& layout = context.layout;
  if (layout.shard == 1 || layout.zero < 2)
    return Together(num_groups, std::vector(num_groups, true));
  Together together(num_groups, std::vector(num_groups, false));
  mesh::Layout taken = layout;  // as if every buffer were taken and given back
  taken.shared_window = false;
  taken.num_micro_batches = std::min(taken.num_micro_batches, kMicroBatches);
  const auto program = compile({context.architecture, taken, "", Purpose::kTrain}, 0);
  if (!program) return Together(num_groups, std::vector(num_groups, true));
  MemoryMeter meter({context.architecture, taken, context.buffers, context.sequence});
  for (const Action& action : program->actions) {
    meter.begin(action);
    mark_pairs(meter, together);
    meter.end(action);
  }
  return together;
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

}  // namespace

// The largest first: the small ones then fit beside them.
GradientPlaces place_gradients(const MemoryContext& context) {
  const Together together = find_together(context);
  std::vector<std::size_t> order(context.buffers.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return context.buffers[a].total() > context.buffers[b].total();
  });
  GradientPlaces places;
  places.offsets.resize(order.size());
  std::vector<Place> placed(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t group = order[i];
    const std::int64_t size =
        (context.buffers[group].total() + kAlignment - 1) / kAlignment * kAlignment;
    std::vector<Place> others;
    for (std::size_t j = 0; j < i; ++j)
      if (together[group][order[j]]) others.push_back(placed[order[j]]);
    const std::int64_t offset = first_gap(std::move(others), size);
    placed[group] = {offset, offset + size};
    places.offsets[group] = offset;
    places.elements = std::max(places.elements, offset + size);
  }
  return places;
}

}  // namespace ptrain::program
