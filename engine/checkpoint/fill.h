#pragma once

#include "core/dcp/metadata.h"
#include "engine/checkpoint/item.h"
#include "engine/checkpoint/open_files.h"

namespace ptrain::checkpoint {

// Fills one run of a tensor from the stored chunks that it touches, reading only the bytes it needs
// (and small gaps between them). True: it needed all bytes of each, compared them with the
// chunk's checksum, and found around them what ptrain writes there: the chunks are whole.
// EngineError when they differ, or an element is nowhere, or in two places with different values.
bool fill(const TensorItem& item, const dcp::TensorEntry& entry, OpenFiles& files);

}  // namespace ptrain::checkpoint
