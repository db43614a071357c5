#include "engine/io/named_array.h"

#include "engine/io/text.h"
#include "kernels/base/error.h"
#include "kernels/base/shape.h"

namespace convoy {

void check_consistent(const NamedArray& array) {
  CONVOY_DCHECK(is_utf8(array.name) && array.name != "__metadata__",
                "array: the name '{}' cannot be stored; expected UTF-8 text", excerpt(array.name));
  std::int64_t size = static_cast<std::int64_t>(size_of(array.dtype));
  for (std::int64_t extent : array.shape) {
    CONVOY_DCHECK(extent >= 0 && !__builtin_mul_overflow(size, extent, &size),
                  "array {}: shape {} has no valid size", array.name, shape_text(array.shape));
  }
  CONVOY_DCHECK(array.bytes.size() == static_cast<std::size_t>(size),
                "array {}: {} bytes, shape {} of {} needs {}", array.name, array.bytes.size(),
                shape_text(array.shape), name(array.dtype), size);
}

}  // namespace convoy
