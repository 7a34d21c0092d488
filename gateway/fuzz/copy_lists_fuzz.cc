// Parameter lists of EXTENDED COPY, POPULATE TOKEN and WRITE USING TOKEN through their parsers. An
// input: the command (1 byte), then the list.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "scsi/token_list.h"
#include "scsi/xcopy_list.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sluice;
  if (size == 0) return 0;
  // an exact copy, so that overreads are detected
  const std::vector<uint8_t> list(data + 1, data + size);
  std::vector<uint8_t> cdb(16);
  cdb[0] = 0x83;
  cdb[1] = data[0] % 3 == 0 ? 0x00 : data[0] % 3 == 1 ? 0x10 : 0x11;
  // The length in the CDB may differ from the received length, because data-out may be truncated.
  store_be32(&cdb[10], static_cast<uint32_t>(list.size()) + (data[0] & 0x80 ? 16 : 0));
  const scsi::TokenBounds bounds{8192, 64, 8192, 120};
  switch (data[0] % 3) {
    case 0: {
      const auto copy = scsi::parse_xcopy(cdb, scsi::ThirdPartyCopyLimits{}, list);
      (void)copy.ok();
      break;
    }
    case 1: {
      const auto token = scsi::parse_populate_token(cdb, bounds, list);
      (void)token.ok();
      break;
    }
    default: {
      const auto write = scsi::parse_write_using_token(cdb, bounds, list);
      (void)write.ok();
      break;
    }
  }
  return 0;
}
