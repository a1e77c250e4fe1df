#include "engine/comm/bootstrap_pmix.h"

#include <fmt/format.h>
#include <pmix.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <memory>

#include "engine/base/engine_error.h"

namespace ptrain::comm {
namespace {

void check(pmix_status_t status, std::string_view what) {
  if (status == PMIX_SUCCESS) return;
  throw EngineError(ExitCode::kEnvironment,
                    fmt::format("PMIx: {} failed: {}", what, PMIx_Error_string(status)),
                    "start the ranks by mpirun or by srun --mpi=pmix");
}

struct Release {
  void operator()(pmix_value_t* value) const { PMIX_VALUE_RELEASE(value); }
};
using Value = std::unique_ptr<pmix_value_t, Release>;

pmix_proc_t process(const std::string& job, pmix_rank_t rank) {
  pmix_proc_t proc;
  PMIX_LOAD_PROCID(&proc, job.c_str(), rank);
  return proc;
}

Value get(const pmix_proc_t& of, const std::string& key) {
  pmix_value_t* value = nullptr;
  check(PMIx_Get(&of, key.c_str(), nullptr, 0, &value), "PMIx_Get of " + key);
  return Value(value);
}

int get_number(const pmix_proc_t& of, const std::string& key) {
  const Value value = get(of, key);
  if (value->type == PMIX_UINT32) return static_cast<int>(value->data.uint32);
  if (value->type == PMIX_UINT16) return static_cast<int>(value->data.uint16);
  throw EngineError(ExitCode::kEnvironment, "PMIx: " + key + " is not a number",
                    "is the launcher's PMIx of version 3 or later?");
}

std::string host_name() {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace

Identity identify() {
  Identity identity;
  identity.node = host_name();
  // PMIx_Init is not tried without a launcher: it fails, and PMIx 4.2 then crashes the
  // process. A launcher that started us and does not answer is an error, never a world of one.
  if (std::getenv("PMIX_NAMESPACE") == nullptr) return identity;
  pmix_proc_t me;
  check(PMIx_Init(&me, nullptr, 0), "PMIx_Init");
  identity.namespace_ = me.nspace;
  identity.rank = static_cast<int>(me.rank);
  const pmix_proc_t job = process(identity.namespace_, PMIX_RANK_WILDCARD);
  identity.size = get_number(job, PMIX_JOB_SIZE);
  identity.local_size = get_number(job, PMIX_LOCAL_SIZE);
  identity.local_rank = get_number(me, PMIX_LOCAL_RANK);
  return identity;
}

bool is_launched() { return PMIx_Initialized() != 0; }

void leave() {
  if (is_launched()) check(PMIx_Finalize(nullptr, 0), "PMIx_Finalize");
}

}  // namespace ptrain::comm
