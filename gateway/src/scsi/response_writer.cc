#include "scsi/response_writer.h"

#include <cstring>

namespace sluice::scsi {

void ResponseWriter::bytes(ByteView data) {
  if (full_ < out_.size() && !data.empty()) {
    const size_t fits = std::min(data.size(), out_.size() - full_);
    std::memcpy(out_.data() + full_, data.data(), fits);
  }
  full_ += data.size();
}

void ResponseWriter::zeros(size_t count) {
  if (full_ < out_.size() && count > 0) {
    std::memset(out_.data() + full_, 0, std::min(count, out_.size() - full_));
  }
  full_ += count;
}

void ResponseWriter::text(std::string_view characters, size_t width) {
  characters = characters.substr(0, width);
  bytes(as_bytes(characters));
  for (size_t i = characters.size(); i < width; ++i) u8(' ');
}

}  // namespace sluice::scsi
