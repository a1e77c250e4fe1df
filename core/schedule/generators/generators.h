#pragma once

#include "core/base/result.h"
#include "core/schedule/schedule.h"

namespace ptrain::schedule {

// Each generator maps a problem to a schedule. It may trust what its entry in the catalogue says
// of virtual stages, and that there is a rank and a micro-batch; what else it cannot do, it
// refuses.

Result<Schedule> gpipe(const Problem& problem);
Result<Schedule> gpipe_lifo(const Problem& problem);
Result<Schedule> one_f_one_b(const Problem& problem);
Result<Schedule> eager_one_f_one_b(const Problem& problem);
Result<Schedule> overlapped_one_f_one_b(const Problem& problem);
Result<Schedule> interleaved_one_f_one_b(const Problem& problem);
Result<Schedule> kimi_k2(const Problem& problem);
Result<Schedule> interleaved_h1(const Problem& problem);
Result<Schedule> interleaved_one_f_one_b_plus_one(const Problem& problem);
Result<Schedule> breadth_first(const Problem& problem);
Result<Schedule> breadth_first_fifo(const Problem& problem);
Result<Schedule> zb_h1(const Problem& problem);
Result<Schedule> zb_h2(const Problem& problem);
Result<Schedule> interleaved_zb_1p(const Problem& problem);
Result<Schedule> zb_v(const Problem& problem);
Result<Schedule> v_half(const Problem& problem);
Result<Schedule> v_min(const Problem& problem);
Result<Schedule> dualpipe_v(const Problem& problem);
Result<Schedule> chimera(const Problem& problem);
Result<Schedule> bitpipe(const Problem& problem);
Result<Schedule> dualpipe(const Problem& problem);
Result<Schedule> hanayo(const Problem& problem);
Result<Schedule> zeropp(const Problem& problem);
Result<Schedule> zb_auto(const Problem& problem);
Result<Schedule> v_auto(const Problem& problem);

}  // namespace ptrain::schedule
