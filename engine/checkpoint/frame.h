#pragma once

#include <cstddef>
#include <span>

#include "core/dcp/item.h"
#include "core/dcp/metadata.h"
#include "engine/checkpoint/file.h"
#include "engine/checkpoint/stored_item.h"

namespace ptrain::checkpoint {

// Whether an item's bytes around the elements of its tensor are those that ptrain writes around
// them. Where they are, the checksum of the elements covers all of the item.
bool has_own_frame(const InFile& file, const dcp::Location& location,
                   const dcp::StoredTensor& stored, const StoredItem::Place& elements);

// The same of a plain value: whether the item is what ptrain makes of this pickle.
bool has_own_frame(const InFile& file, const dcp::Location& location,
                   std::span<const std::byte> pickle);

}  // namespace ptrain::checkpoint
