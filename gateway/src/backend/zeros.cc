#include "backend/zeros.h"

#include <sys/mman.h>

namespace sluice::backend {

const uint8_t* zeros() {
  static const uint8_t* const area = []() -> const uint8_t* {
    void* memory =
        mmap(nullptr, kZerosSize, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return nullptr;
    // A huge zero page is 2 MiB of real memory to pull through the caches; the small one is 4 KiB.
    madvise(memory, kZerosSize, MADV_NOHUGEPAGE);
    return static_cast<const uint8_t*>(memory);
  }();
  return area;
}

}  // namespace sluice::backend
