#pragma once

#include <string>

#include "core/base/result.h"
#include "engine/entry.h"

namespace ptrain::cli {

// The absolute path of the running binary.
Result<std::string> own_path();

// The engine module beside the binary; an error (kEnvironment) with a remedy where there is none.
Result<std::string> find_engine();

// Opens it and returns its entry. It stays open: what torch started cannot be unloaded.
Result<ptrain_engine_main_t> open_engine();

}  // namespace ptrain::cli
