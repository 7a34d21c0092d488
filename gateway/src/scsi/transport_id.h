// TransportIDs of iSCSI initiator ports (SPC-5 §7.6.4.6).
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "scsi/outcome.h"
#include "scsi/response_writer.h"

namespace sluice::scsi {

struct TransportId {
  std::string_view name{};  // iSCSI name as sent: any case, no terminator
  bool has_isid = false;    // TPID FORMAT 01b: names a port; 00b: the whole device
  std::array<uint8_t, 6> isid{};
};

// Reads the TransportID at the front of `data`; *used is its length. `offset` is where `data`
// starts in the parameter list, for field pointers. Any other protocol is 05/26/00.
Outcome<TransportId> parse_transport_id(ByteView data, uint16_t offset, size_t* used);

// Appends a TransportID of format 01b.
void write_transport_id(std::string_view name, const std::array<uint8_t, 6>& isid,
                        ResponseWriter& writer);

}  // namespace sluice::scsi
