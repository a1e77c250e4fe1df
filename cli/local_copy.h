#pragma once

#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/run/directory.h"
#include "core/run/plan.h"

namespace ptrain::cli {

// What starts ranks from copies on the disks of their nodes.
struct LocalWorker {
  std::string worker;               // path of ptrain
  std::vector<std::string> before;  // words before it
};

// Has each of the job's nodes copy ptrain, the plan's engine and their libraries into the folder
// that the recipe names. Where one of them cannot, an error says which and why, and ranks can still
// start from where ptrain was installed.
Result<LocalWorker> copy_to_nodes(const run::Directory& directory, const run::Plan& plan,
                                  const std::vector<std::string>& nodes);

}  // namespace ptrain::cli
