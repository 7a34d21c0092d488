// The table of all keys of login and text negotiation with their rules (RFC 7143 §12, §13; RFC 7144
// §7). negotiation.cc implements the rules.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace sluice::iscsi {

enum class Key : uint8_t {
  // --- security (§12.1)
  kAuthMethod,
  kChapA,
  kChapN,
  kChapR,
  kChapI,
  kChapC,
  // --- identity (§13.3 to §13.9, §13.21)
  kSendTargets,
  kTargetName,
  kInitiatorName,
  kTargetAlias,
  kInitiatorAlias,
  kTargetAddress,
  kTargetPortalGroupTag,
  kSessionType,
  // --- operational
  kHeaderDigest,
  kDataDigest,
  kMaxConnections,
  kInitialR2T,
  kImmediateData,
  kMaxRecvDataSegmentLength,
  kMaxBurstLength,
  kFirstBurstLength,
  kDefaultTime2Wait,
  kDefaultTime2Retain,
  kMaxOutstandingR2T,
  kDataPduInOrder,
  kDataSequenceInOrder,
  kErrorRecoveryLevel,
  kTaskReporting,
  kIscsiProtocolLevel,
  // --- obsolete (§13.25)
  kIfMarker,
  kOfMarker,
  kIfMarkInt,
  kOfMarkInt,
};
inline constexpr unsigned kKeyCount = static_cast<unsigned>(Key::kOfMarkInt) + 1;

enum class Rule : uint8_t {
  kDeclared,  // the sender declares it, the receiver stores it
  kSecurity,  // a step of an authentication method; chap.cc checks the order
  kQuestion,  // SendTargets
  kList,      // the answerer selects the first acceptable value
  kAnd,       // Yes if both sides say Yes
  kOr,        // Yes if one side says Yes
  kMinimum,   // the lower number
  kMaximum,   // the higher number
  kObsolete,  // answered with Reject (§13.25)
  kRefused,   // a Boolean that is answered with No (§13.25)
};

// Sets of stages and of senders.
inline constexpr uint8_t kInSecurity = 1;
inline constexpr uint8_t kInOperational = 2;
inline constexpr uint8_t kInFullFeature = 4;
inline constexpr uint8_t kInAnyLogin = kInSecurity | kInOperational;
inline constexpr uint8_t kByInitiator = 1;
inline constexpr uint8_t kByTarget = 2;
inline constexpr uint8_t kByBoth = kByInitiator | kByTarget;

struct KeyRule {
  Key key;
  std::string_view name;
  Rule rule;
  uint8_t stages;    // stages in which it may be sent
  uint8_t senders;   // sides that may send it first
  uint32_t minimum;  // for numbers
  uint32_t maximum;
  uint32_t fallback;  // default number; Yes is 1
};

std::span<const KeyRule> all_keys();  // in the order of Key
const KeyRule& rule_of(Key key);
const KeyRule* find_key(std::string_view name);  // nullptr: not understood

}  // namespace sluice::iscsi
