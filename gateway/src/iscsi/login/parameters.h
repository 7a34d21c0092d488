// The result of a login (RFC 7143 §13): the operational parameters of a session and its one
// connection (MaxConnections=1, ErrorRecoveryLevel=0).
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "base/limits.h"

namespace sluice::iscsi {

// What this gateway offers; configurable per gateway. Ranges as in RFC 7143 §13 unless given here.
struct Offer {
  uint32_t max_recv_data_segment_length = 262144;  // bytes, 512..kMaxSegment; for receiving
  uint32_t max_burst_length = 1048576;             // bytes, 512..kMaxBurst
  uint32_t first_burst_length = 262144;            // bytes, 512..max_burst_length
  uint32_t max_outstanding_r2t = 8;                // 1..16
  bool initial_r2t = false;                        // the result is OR: Yes here forces Yes
  bool immediate_data = true;                      // the result is AND
  uint32_t default_time2wait = 2;                  // seconds
  uint32_t default_time2retain = 0;                // seconds; ERL 0 retains nothing
  enum class Digest : uint8_t { kAllow, kRequire, kRefuse };
  Digest header_digest = Digest::kAllow;
  Digest data_digest = Digest::kAllow;
  // highest accepted iSCSIProtocolLevel; 2 (RFC 7144) is not supported
  uint32_t protocol_level = 1;
};

struct Parameters {
  // --- session
  bool initial_r2t = true;
  bool immediate_data = true;
  uint32_t max_burst_length = 262144;
  uint32_t first_burst_length = 65536;
  uint32_t max_outstanding_r2t = 1;
  uint32_t max_connections = 1;
  bool data_pdu_in_order = true;
  bool data_sequence_in_order = true;
  uint32_t error_recovery_level = 0;
  uint32_t default_time2wait = 2;
  uint32_t default_time2retain = 0;
  // --- connection
  bool header_digest = false;  // CRC32C
  bool data_digest = false;
  uint32_t max_send_data_segment_length = 8192;  // the initiator's MaxRecvDataSegmentLength
  uint32_t max_recv_data_segment_length = 8192;  // the target's declared value
  bool initiator_declared_segment = false;
  uint32_t task_reporting = 0;  // RFC3720
  uint32_t protocol_level = 1;  // iSCSIProtocolLevel, RFC 7144
  // --- identity
  bool discovery = false;
  std::string initiator_name;  // lower case
  std::string initiator_alias;
  std::string target_name;  // empty in discovery sessions
  std::array<uint8_t, 6> isid{};
  uint16_t tpgt = 1;
  std::string auth_method = "None";  // "None", "CHAP" (for `sessions`)
  std::string auth_user;             // CHAP_N of the initiator, empty for None
  bool mutual_auth = false;
  bool read_only = false;     // the host may only read
  uint16_t forwarded_by = 0;  // number of the gateway to which the host is connected; 0: this one
  Nanos host_age = 0;         // of a forwarded nexus: how long the host has had it there
};

// Whether the initiator has authenticated itself; if not, its name alone admitted it.
inline bool proven(const Parameters& p) { return p.auth_method != "None"; }

}  // namespace sluice::iscsi
