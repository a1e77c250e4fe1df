#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/dcp/metadata.h"
#include "engine/checkpoint/item.h"

namespace ptrain::checkpoint {

// What another rank saves: tensors without data, in its order. Must give what that rank would say.
using ItemsOf = std::function<Items(int rank)>;

// __R_0.distcp
std::string rank_file_name(int rank);

// Where the chunks of one item lie in a file that has `position` bytes before them, which becomes
// those behind them. Their data follow each other in the item's. It follows from dtype, shape and
// run alone, so every rank can tell the place of all that any rank writes, and none need ask.
std::vector<dcp::Chunk> plan_item(const TensorItem& item, const std::string& file,
                                  std::int64_t& position);
// Puts the planned chunks of an item into the content of its file.
void add_item(dcp::Metadata& content, const TensorItem& item, std::vector<dcp::Chunk> chunks);
// Tensor data of so many bytes begin on a multiple of this of their file.
std::uint64_t alignment_of(std::int64_t bytes);

// What a file of tensors alone will be.
struct FilePlan {
  dcp::Metadata content;
  std::int64_t bytes = 0;
};
FilePlan plan_file(const Items& items, int rank);

// Of what tensors are in a file and where: equal for equal content.
std::uint64_t digest_of(const dcp::Metadata& content);

}  // namespace ptrain::checkpoint
