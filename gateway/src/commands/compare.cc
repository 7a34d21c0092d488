#include "commands/compare.h"

#include <algorithm>
#include <cstring>

#include "commands/handler.h"

namespace sluice::lun {
namespace {

// Walks a list of slices by runs of bytes.
class Cursor {
 public:
  Cursor(const std::vector<Slice>& slices, uint64_t skip) : slices_(slices) { advance(skip); }
  const uint8_t* data() const { return slices_[index_].data + at_; }
  uint64_t run() const { return index_ < slices_.size() ? slices_[index_].size - at_ : 0; }
  void advance(uint64_t bytes) {
    at_ += bytes;
    while (index_ < slices_.size() && at_ >= slices_[index_].size) {
      at_ -= slices_[index_].size;
      ++index_;
    }
  }

 private:
  const std::vector<Slice>& slices_;
  size_t index_ = 0;
  uint64_t at_ = 0;
};

}  // namespace

std::optional<uint64_t> first_difference(const std::vector<Slice>& medium,
                                         const std::vector<Slice>& data_out, uint64_t skip,
                                         uint64_t length) {
  Cursor a(medium, 0);
  Cursor b(data_out, skip);
  for (uint64_t done = 0; done < length;) {
    const uint64_t part = std::min({a.run(), b.run(), length - done});
    if (part == 0) return done;  // less data than promised: what is missing differs
    if (std::memcmp(a.data(), b.data(), part) != 0) {
      const auto end = a.data() + part;
      return done + static_cast<uint64_t>(std::mismatch(a.data(), end, b.data()).first - a.data());
    }
    a.advance(part);
    b.advance(part);
    done += part;
  }
  return std::nullopt;
}

void finish_miscompare(Command& command, uint64_t offset) {
  scsi::Sense sense = scsi::Sense::make(scsi::SenseKey::kMiscompare, 0x1d, 0x00);
  sense.has_information = true;
  sense.information = offset;
  finish_sense(command, sense);
}

}  // namespace sluice::lun
