#include "core/recipe/precision.h"

namespace ptrain::recipe {

Result<DType> dtype_of(Precision precision) {
  switch (precision) {
    case Precision::kFloat32:
      return DType::kFloat32;
    case Precision::kFloat64:
      return DType::kFloat64;
    case Precision::kBFloat16:
      break;
  }
  return fail(ExitCode::kUsage, "precision: bf16 is not available in this version",
              "use fp32 or fp64");
}

}  // namespace ptrain::recipe
