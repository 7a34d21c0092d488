// The complete protocol between gateways, in addition to RFC 7143 (DESIGN R1, R6, R9). A forwarding
// session is an iSCSI session from a gateway (the forwarder, as initiator) to the forwarding port
// of the owner, one for each I_T nexus of the forwarder and each owner.
//
// Login: InitiatorName, ISID and TargetName are those of the origin, the nexus at the forwarder.
// The first request also has this key (RFC 7143 §13.21):
//
//   X-dev.sluice.Origin=<version>,<gateway>,<incarnation>,<TPGT>,<relative target port>,
//                       <nexus incarnation>,<rw|ro>,<owner>,<owner's incarnation>
//
// Nexus incarnation: increases with every nexus that a gateway opens, so that a delayed login is
// detected. CHAP with SHA-256 is mandatory in both directions.
//
//   X-dev.sluice.HostAge=<milliseconds>     how long the host has had its nexus at the forwarder
//
// A gateway that does not know this key answers NotUnderstood and continues (RFC 7143 §6.2). If the
// key is missing, the age is 0.
//
// Full feature phase: every limits::kTokenInterval the owner sends a NOP-In with a token as its
// data, which is not answered. Every SCSI Command has this additional header segment (§11.2.2). Its
// type is reserved in RFC 7143 and otherwise unused:
//
//   0-1  17, what follows byte 2    2  3fh    3  reserved    4-11  token    12-19  epoch
//
// A command may be answered with one of the Response codes below (§11.4.3: 80h-ffh are
// vendor-specific); its status then has no meaning. LOGICAL UNIT RESET may also be answered with
// kResponseNotOwner (§11.6.1 reserves that code): the forwarder's commands at this gateway have
// ended, but another gateway must perform the reset. A forwarder that does not know the code treats
// it as success.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/clock.h"
#include "base/result.h"

namespace sluice::iscsi {

inline constexpr std::string_view kOriginKey = "X-dev.sluice.Origin";
inline constexpr unsigned kForwardingVersion = 1;
inline constexpr uint32_t kTokenSize = 8;  // bytes of data of a NOP-In with a token

struct Origin {
  uint16_t gateway = 0;     // number, 1..65535
  std::string incarnation;  // of that gateway's process; 1..kMaxIncarnation characters
  uint16_t tpgt = 1;
  uint16_t relative_port = 1;
  uint64_t nexus = 0;  // incarnation of the nexus
  bool read_only = false;
  uint16_t owner = 0;  // the gateway that the forwarder means to reach
  std::string owner_incarnation;
  bool operator==(const Origin&) const = default;
};
inline constexpr size_t kMaxIncarnation = 64;

inline constexpr std::string_view kHostAgeKey = "X-dev.sluice.HostAge";
inline constexpr Nanos kMaxHostAge = 100 * int64_t{365} * 86400 * kSecond;

// Rounded up; limited to kMaxHostAge.
std::string host_age_text(Nanos age);
Result<Nanos> parse_host_age(std::string_view text);

std::string origin_text(const Origin& origin);
// Error: which part is malformed, or that the version differs.
Result<Origin> parse_origin(std::string_view text);

inline constexpr uint8_t kForwardedAhs = 0x3f;
inline constexpr uint32_t kForwardedAhsSize = 20;  // bytes, whole words
struct Forwarded {
  uint64_t token = 0;
  uint64_t epoch = 0;  // of the volume as the forwarder knows it; not 0
};
void store_forwarded(const Forwarded& forwarded, uint8_t* ahs);
// `length`: AHSLength. False: malformed.
bool load_forwarded(ByteView ahs, uint32_t length, Forwarded* out);

// Was not and will not be submitted: the token is too old or unknown.
inline constexpr uint8_t kResponseStale = 0x80;
// Was not and will not be submitted: this gateway does not own the volume in that epoch.
inline constexpr uint8_t kResponseNotOwner = 0x81;
// The outcome is unknown: the nexus must be dropped (DESIGN R3).
inline constexpr uint8_t kResponseUnknown = 0x82;
// The command was aborted. A host would get no answer (SAM-5, TAS=0), but a forwarder must know.
inline constexpr uint8_t kResponseAborted = 0x83;

}  // namespace sluice::iscsi
