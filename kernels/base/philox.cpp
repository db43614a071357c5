#include "kernels/base/philox.h"

#include <Random123/philox.h>

namespace convoy {

PhiloxBlock philox(const PhiloxBlock& counter, const PhiloxKey& key) {
  const r123::Philox4x32::ctr_type block =
      r123::Philox4x32()({{counter[0], counter[1], counter[2], counter[3]}}, {{key[0], key[1]}});
  return {block[0], block[1], block[2], block[3]};
}

}  // namespace convoy
