#include "engine/execute/groups.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/comm/nccl.h"

namespace ptrain::execute {

Groups::Groups(comm::Communicator& world, const mesh::Layout& layout,
               const model::Architecture& part)
    : world_(world),
      layout_(layout),
      place_(mesh::coordinates_of(layout, world.rank())),
      communicators_{world} {
  make_dense();
  make_contexts();
  make_vocabulary(part);
  if (std::ranges::any_of(part.groups, &model::GroupSpec::experts)) {
    make_rows();
    make_experts();
  }
  make_tied(part);
  make_neighbours(part);
}

// Groups of one kind have names of their own: messages and the supervisor tell them apart.
comm::Communicator* Groups::make(const std::string& name, Seat seat) {
  auto group =
      comm::for_tensors(world_.split(seat.color, seat.key, fmt::format("{}/{}", name, seat.color)));
  if (group == nullptr) return nullptr;
  return owned_.emplace_back(std::move(group)).get();
}

// Numbers the groups along the axes that `remove` takes out of a layout and a place.
template <class Remove>
int Groups::color_without(Remove remove) const {
  mesh::Layout layout = layout_;
  mesh::Coordinates place = place_;
  remove(layout, place);
  return mesh::rank_of(layout, place);
}

void Groups::make_dense() {
  const bool messages = !layout_.shared_window;
  if (layout_.num_shards() > 1) {
    const Seat seat{color_without([](auto& layout, auto& place) {
                      layout.shard = layout.cp = 1;
                      place.shard = place.cp = 0;
                    }),
                    place_.shard_rank(layout_)};
    communicators_.shard_reduce = make("shard/reduce", seat);
    if (messages) communicators_.shard_gather = make("shard/gather", seat);
  }
  if (layout_.dp > 1 && messages) {
    const int color = color_without([](auto& layout, auto& place) { layout.dp = 1, place.dp = 0; });
    communicators_.dp_reduce = make("dp/reduce", {color, place_.dp});
  }
  if (layout_.tp > 1) {
    const int color = color_without([](auto& layout, auto& place) { layout.tp = 1, place.tp = 0; });
    communicators_.tensor = make("tp/exchange", {color, place_.tp});
    communicators_.tensor_sums = make("tp/sums", {color, place_.tp});
  }
  if (layout_.pp > 1) {
    const int color = color_without([](auto& layout, auto& place) { layout.pp = 1, place.pp = 0; });
    communicators_.pipeline_forward = make("pp/forward", {color, place_.pp});
    communicators_.pipeline_backward = make("pp/backward", {color, place_.pp});
  }
}

// Tensor ranks are neighbours, as in model::VocabularyPlace. A spread embedding and a spread head
// are shared by the same ranks.
void Groups::make_vocabulary(const model::Architecture& part) {
  const model::VocabularyPlace& sharers = part.head.is_spread() ? part.head : part.embedding;
  if (!sharers.is_spread()) return;
  const int color = color_without([](auto& layout, auto& place) {
    layout.pp = layout.tp = 1;
    place.pp = place.tp = 0;
  });
  communicators_.vocabulary = make("vocabulary/exchange", {color, sharers.rank});
}

// The ranks of a row are a ring of groups of neighbours.
void Groups::make_contexts() {
  const int ulysses = layout_.ulysses;
  if (layout_.cp / ulysses > 1) {
    const int color =
        color_without([&](auto& layout, auto& place) { layout.cp = ulysses, place.cp %= ulysses; });
    communicators_.ring = make("cp/ring", {color, place_.cp / ulysses});
  }
  if (ulysses > 1) {
    const int color = color_without(
        [&](auto& layout, auto& place) { layout.cp /= ulysses, place.cp /= ulysses; });
    communicators_.ulysses = make("cp/ulysses", {color, place_.cp % ulysses});
  }
}

// What routers choose on some ranks concerns the others that hold tokens of the same rows.
void Groups::make_rows() {
  if (layout_.cp * layout_.tp == 1) return;
  const int color = color_without([](auto& layout, auto& place) {
    layout.cp = layout.ulysses = layout.tp = 1;
    place.cp = place.tp = 0;
  });
  communicators_.rows = make("rows/exchange", {color, place_.cp * layout_.tp + place_.tp});
}

Groups::Seat Groups::expert_seat(int mesh::ExpertCoordinates::*axis) const {
  mesh::ExpertCoordinates place = mesh::expert_coordinates_of(layout_, world_.rank());
  const int key = place.*axis;
  place.*axis = 0;
  const int block = layout_.num_stage_ranks();
  const int shards = mesh::num_expert_shards(layout_);
  const int in_block =
      ((place.edp * shards + place.eshard) * layout_.ep + place.ep) * layout_.etp + place.etp;
  return {place.pp * block + in_block, key};
}

void Groups::make_experts() {
  if (!mesh::experts_have_axes(layout_)) {
    communicators_.expert_gather = communicators_.shard_gather;
    communicators_.expert_reduce = communicators_.shard_reduce;
    communicators_.expert_replicas = communicators_.dp_reduce;
    return;
  }
  const int shards = mesh::num_expert_shards(layout_);
  const int replicas = mesh::num_expert_replicas(layout_);
  const int sharers = layout_.ep * layout_.etp;
  if (sharers > 1)
    communicators_.experts =
        make("ep/exchange", {world_.rank() / sharers, world_.rank() % sharers});
  if (shards > 1) {
    const Seat seat = expert_seat(&mesh::ExpertCoordinates::eshard);
    communicators_.expert_gather = make("experts/gather", seat);
    communicators_.expert_reduce = make("experts/reduce", seat);
  }
  if (replicas > 1)
    communicators_.expert_replicas = make("edp/reduce", expert_seat(&mesh::ExpertCoordinates::edp));
}

// Of the ranks along the pipeline those that hold the parameters that a tied head shares with the
// embedding. A rank that holds both has no peer, nor have those of which each has its own rows.
void Groups::make_tied(const model::Architecture& part) {
  const bool spreads = part.embedding.is_spread();
  if (layout_.pp == 1 || !part.config.tie_word_embeddings || spreads) return;
  const bool holds = std::ranges::any_of(
      part.parameters, [](const model::ParameterSpec& parameter) { return parameter.group == 0; });
  const int color = color_without([](auto& layout, auto& place) { layout.pp = 1, place.pp = 0; });
  comm::Communicator* tied = make("pp/tied", {holds ? color : -1, place_.pp});
  if (tied != nullptr && tied->size() > 1) communicators_.tied = tied;
}

// Of the tensor axis those that hold the same heads of keys and values, where these are fewer than
// the axis has ranks.
void Groups::make_neighbours(const model::Architecture& part) {
  if (layout_.tp == 1) return;
  int count = 1;
  for (const model::ParameterSpec& parameter : part.parameters)
    if (parameter.sum_ranks < layout_.tp) count = std::max(count, parameter.sum_ranks);
  const int color = count > 1 ? world_.rank() / count : -1;
  communicators_.key_value_sums = make("tp/neighbours", {color, place_.tp % count});
}

void Groups::close() {
  for (auto group = owned_.rbegin(); group != owned_.rend(); ++group) (*group)->close();
}

}  // namespace ptrain::execute
