#pragma once

#include <string>

#include "core/base/result.h"

namespace ptrain::resume {

enum class Look {
  kSizes,   // quick, whatever the checkpoint's size
  kContent  // reads every byte
};

// Whether a checkpoint that ptrain wrote is whole. Error (kUnusable): the first thing that is not.
Status verify(const std::string& folder, Look look);

}  // namespace ptrain::resume
