#pragma once

namespace ptrain::packing {

// How pieces of documents are put into rows.
enum class Strategy { kNextFit, kFirstFit, kBestFitDecreasing };

}  // namespace ptrain::packing
