#include "backend/truncation_sentinel.h"

#include <fcntl.h>
#include <sys/mman.h>

#include <string>

#include "backend/guarded_word.h"
#include "backend/system_page.h"
#include "base/file_descriptor.h"

namespace sluice::backend {
namespace {

// Not zero, which is what a page that comes back holds.
constexpr uint64_t kMark = 0x736c75696365656f;

uint64_t last_page_of(uint64_t size) { return (size - 1) / page_size() * page_size(); }

uint64_t* mark_of(uint8_t* page) { return reinterpret_cast<uint64_t*>(page); }  // NOLINT: aligned

// The file, opened again. A mapping keeps its open file, and thus a lock on it, for as long as the
// process has memory. After a kill that is until the last blocked thread ends.
FileDescriptor open_again(int fd) {
  return FileDescriptor(
      ::open(("/proc/self/fd/" + std::to_string(fd)).c_str(), O_RDONLY | O_CLOEXEC));
}

// A private page over the file's last one, with the mark; nullptr where that can't be had.
uint8_t* map_marked(int fd, uint64_t size) {
  const FileDescriptor again = open_again(fd);
  if (!again.valid()) return nullptr;
  void* mapped = mmap(nullptr, page_size(), PROT_READ | PROT_WRITE, MAP_PRIVATE, again.get(),
                      static_cast<off_t>(last_page_of(size)));
  if (mapped == MAP_FAILED) return nullptr;
  madvise(mapped, page_size(), MADV_DONTDUMP);  // the rest of the page is the customer's data
  auto* page = static_cast<uint8_t*>(mapped);
  if (store_guarded(mark_of(page), kMark)) return page;
  munmap(page, page_size());
  return nullptr;
}

}  // namespace

std::unique_ptr<TruncationSentinel> TruncationSentinel::create(int fd, uint64_t size) {
  install_word_guard();
  uint8_t* page = map_marked(fd, size);
  if (!page) return nullptr;
  return std::unique_ptr<TruncationSentinel>(new TruncationSentinel(page, last_page_of(size)));
}

TruncationSentinel::~TruncationSentinel() { munmap(page_, page_size()); }

bool TruncationSentinel::intact() const { return load_guarded(mark_of(page_)) == kMark; }

// The new page replaces the old one at the same address in one step: a concurrent intact() waits
// for it and never sees an unmarked page.
bool TruncationSentinel::move(int fd, uint64_t size) {
  if (last_page_of(size) == last_page_.load(std::memory_order_relaxed)) return true;
  uint8_t* page = map_marked(fd, size);
  if (!page) return false;
  if (mremap(page, page_size(), page_size(), MREMAP_MAYMOVE | MREMAP_FIXED, page_) != page_) {
    munmap(page, page_size());
    return false;
  }
  last_page_.store(last_page_of(size), std::memory_order_relaxed);
  return true;
}

}  // namespace sluice::backend
