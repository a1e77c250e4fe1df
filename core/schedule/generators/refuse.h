#pragma once

#include <string>
#include <string_view>

#include "core/base/result.h"

namespace ptrain::schedule {

// "schedule NAME REASON", and the nearest values that it can do.
tl::unexpected<Error> refuse(std::string_view name, std::string_view reason,
                             std::string_view nearest);

}  // namespace ptrain::schedule
