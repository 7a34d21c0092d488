#include "scsi/request_sense.h"

#include <array>

#include "scsi/response_writer.h"

namespace sluice::scsi {

size_t build_request_sense(ByteView cdb, const Sense& sense, MutableBytes out) {
  const bool descriptors = (cdb[1] & 0x01) != 0;  // DESC
  std::array<uint8_t, kMaxSenseBytes> data;
  const size_t size = encode(sense, descriptors, data);
  ResponseWriter w(out);
  w.bytes(ByteView(data).first(size));
  return w.size();
}

}  // namespace sluice::scsi
