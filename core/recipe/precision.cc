#include "core/recipe/precision.h"

namespace ptrain::recipe {

DType compute_dtype_of(Precision precision) {
  switch (precision) {
    case Precision::kFloat32:
      return DType::kFloat32;
    case Precision::kFloat64:
      return DType::kFloat64;
    case Precision::kBFloat16:
      return DType::kBFloat16;
  }
  return DType::kFloat32;
}

}  // namespace ptrain::recipe
