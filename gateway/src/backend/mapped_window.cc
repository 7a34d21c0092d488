#include "backend/mapped_window.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "backend/guarded_copy.h"
#include "backend/range.h"

namespace sluice::backend {
namespace {

constexpr uint64_t kPage = 4096;  // bytes
constexpr uint64_t kPagesPerWord = 32;
constexpr uint64_t kWordSpan = kPage * kPagesPerWord;  // bytes
constexpr uint64_t kLookedUp = uint64_t{1} << 63;
constexpr uint64_t kAllPages = (uint64_t{1} << kPagesPerWord) - 1;
// Growth factor of the reservation at open; address space costs nothing.
constexpr uint64_t kGrowthFactor = 8;
constexpr uint64_t kLeastMapping = uint64_t{1} << 30;  // bytes
constexpr uint64_t kGrowthLimit = uint64_t{1} << 43;   // larger files aren't allowed to grow

uint64_t bitmap_bytes(uint64_t mapped) { return mapped / kWordSpan * sizeof(uint64_t); }

// Bits of the pages [first, last] that lie in word `index`.
uint64_t bits_of(uint64_t index, uint64_t first, uint64_t last) {
  const uint64_t low = std::max(first, index * kPagesPerWord) % kPagesPerWord;
  const uint64_t high = std::min(last, index * kPagesPerWord + kPagesPerWord - 1) % kPagesPerWord;
  return (kAllPages >> (kPagesPerWord - 1 - high)) & (kAllPages << low);
}

}  // namespace

std::unique_ptr<MappedWindow> MappedWindow::open(int fd, uint64_t size, bool read_only) {
  if (sysconf(_SC_PAGESIZE) != static_cast<long>(kPage) || size > uint64_t{1} << 46) return nullptr;
  std::unique_ptr<MappedWindow> window(new MappedWindow());
  // One page more than the file, for can_look_up().
  const uint64_t least = (size / kWordSpan + 2) * kWordSpan;
  const uint64_t wish =
      size < kGrowthLimit ? std::max(least * kGrowthFactor, kLeastMapping) : least;
  if (!window->map(fd, wish, read_only) && !window->map(fd, least, read_only)) return nullptr;
  if (!window->can_look_up()) return nullptr;
  install_copy_guard();
  return window;
}

// The mapping may extend beyond the file's end, so that growing the file suffices.
bool MappedWindow::map(int fd, uint64_t bytes, bool read_only) {
  void* base = mmap(nullptr, bytes, PROT_READ | (read_only ? 0 : PROT_WRITE), MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return false;
  void* bitmap = mmap(nullptr, bitmap_bytes(bytes), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (bitmap == MAP_FAILED) {
    munmap(base, bytes);
    return false;
  }
  // Core files must not contain customers' data.
  madvise(base, bytes, MADV_DONTDUMP);
  base_ = static_cast<uint8_t*>(base);
  words_ = static_cast<std::atomic<uint64_t>*>(bitmap);
  mapped_ = bytes;
  return true;
}

MappedWindow::~MappedWindow() {
  if (base_) munmap(base_, mapped_);
  if (words_) munmap(words_, bitmap_bytes(mapped_));
}

// mincore(2) reports all pages as present if the process may not write to the file. Pages beyond
// the file's end are never present.
bool MappedWindow::can_look_up() const {
  unsigned char resident = 1;
  return mincore(base_ + mapped_ - kPage, kPage, &resident) == 0 && (resident & 1) == 0;
}

// Uses mincore(), because SEEK_HOLE would walk all pages of a large file to find the next hole. It
// reports swapped-out pages as holes. It is called once per word, so that reading holes stays
// cheap; a swapped page is accessed through the descriptor until it is written.
uint64_t MappedWindow::look_up(uint64_t index) const {
  std::atomic<uint64_t>& word = words_[index];
  uint64_t seen = word.load(std::memory_order_acquire);
  while ((seen & kLookedUp) == 0) {
    unsigned char resident[kPagesPerWord] = {};
    uint64_t found = 0;
    if (mincore(base_ + index * kWordSpan, kWordSpan, resident) == 0) {
      for (uint64_t page = 0; page < kPagesPerWord; ++page) {
        found |= uint64_t{resident[page] & 1u} << page;
      }
    }
    // Fails if a concurrent call marked a neighbor or initialized the word.
    if (word.compare_exchange_strong(seen, seen | found | kLookedUp, std::memory_order_acq_rel)) {
      return seen | found | kLookedUp;
    }
  }
  return seen;
}

bool MappedWindow::holds(uint64_t offset, uint64_t length) const {
  if (length == 0 || !within(offset, length, mapped_) || retired()) return false;
  const uint64_t first = offset / kPage;
  const uint64_t last = (offset + length - 1) / kPage;
  for (uint64_t index = first / kPagesPerWord; index <= last / kPagesPerWord; ++index) {
    const uint64_t wanted = bits_of(index, first, last);
    const uint64_t word = words_[index].load(std::memory_order_acquire);
    if ((word & wanted) == wanted) continue;
    if ((word & kLookedUp) != 0 || (look_up(index) & wanted) != wanted) return false;
  }
  return true;
}

bool MappedWindow::write(uint64_t offset, uint64_t length, const iovec* iov, uint32_t iovcnt) {
  return copy_into_mapping(base_ + offset, length, iov, iovcnt);
}

bool MappedWindow::read(uint64_t offset, uint64_t length, const iovec* iov, uint32_t iovcnt) const {
  return copy_from_mapping(base_ + offset, length, iov, iovcnt);
}

void MappedWindow::mark(uint64_t offset, uint64_t length) {
  if (length == 0 || !within(offset, length, mapped_)) return;
  const uint64_t first = offset / kPage;
  const uint64_t last = (offset + length - 1) / kPage;
  for (uint64_t index = first / kPagesPerWord; index <= last / kPagesPerWord; ++index) {
    const uint64_t written = bits_of(index, first, last);
    if ((words_[index].load(std::memory_order_relaxed) & written) != written) {
      words_[index].fetch_or(written, std::memory_order_release);
    }
  }
}

void MappedWindow::forget(uint64_t offset, uint64_t length) {
  const uint64_t first = (offset + kPage - 1) / kPage;
  const uint64_t end = std::min(offset + length, mapped_) / kPage;
  if (first >= end) return;
  const uint64_t last = end - 1;
  for (uint64_t index = first / kPagesPerWord; index <= last / kPagesPerWord; ++index) {
    const uint64_t gone = bits_of(index, first, last);
    // A concurrent initialization of a shared word could set the bits again that are cleared here.
    // That can't happen after the word was initialized.
    const uint64_t word =
        gone == kAllPages ? words_[index].load(std::memory_order_relaxed) : look_up(index);
    if ((word & gone) != 0) words_[index].fetch_and(~gone, std::memory_order_release);
  }
}

}  // namespace sluice::backend
