#pragma once

#include <string>

#include "core/base/result.h"

namespace ptrain::cli {

// Whether the libtorch that this process has loaded, if any, is of the version that ptrain was
// built with: another one may load well and then compute or crash at will.
Status check_torch_version();

// The version that a folder of torch names: version.py of a wheel, build-version of a libtorch
// archive; empty where it has neither.
std::string torch_version_in(const std::string& folder);

}  // namespace ptrain::cli
