#include "iscsi/login/keys.h"

#include <array>

namespace sluice::iscsi {
namespace {

constexpr uint32_t kLargest = (1u << 24) - 1;  // of lengths: 2^24-1

constexpr KeyRule security(Key key, std::string_view name) {
  return {key, name, Rule::kSecurity, kInSecurity, kByBoth, 0, 0, 0};
}

constexpr KeyRule declared(Key key, std::string_view name, uint8_t stages, uint8_t senders) {
  return {key, name, Rule::kDeclared, stages, senders, 0, 0, 0};
}

// Negotiated by both sides in the operational stage only (use LO or IO).
constexpr KeyRule negotiated(Key key, std::string_view name, Rule rule, uint32_t minimum,
                             uint32_t maximum, uint32_t fallback) {
  return {key, name, rule, kInOperational, kByBoth, minimum, maximum, fallback};
}

constexpr KeyRule obsolete(Key key, std::string_view name, Rule rule) {
  return {key, name, rule, kInOperational, kByBoth, 0, 0, 0};
}

constexpr uint8_t kAlways = kInAnyLogin | kInFullFeature;

constexpr std::array<KeyRule, kKeyCount> kTable = {{
    {Key::kAuthMethod, "AuthMethod", Rule::kList, kInSecurity, kByBoth, 0, 0, 0},
    security(Key::kChapA, "CHAP_A"),
    security(Key::kChapN, "CHAP_N"),
    security(Key::kChapR, "CHAP_R"),
    security(Key::kChapI, "CHAP_I"),
    security(Key::kChapC, "CHAP_C"),

    {Key::kSendTargets, "SendTargets", Rule::kQuestion, kInFullFeature, kByInitiator, 0, 0, 0},
    declared(Key::kTargetName, "TargetName", kInAnyLogin, kByInitiator),
    declared(Key::kInitiatorName, "InitiatorName", kInAnyLogin, kByInitiator),
    declared(Key::kTargetAlias, "TargetAlias", kAlways, kByTarget),
    declared(Key::kInitiatorAlias, "InitiatorAlias", kAlways, kByInitiator),
    declared(Key::kTargetAddress, "TargetAddress", kAlways, kByTarget),
    declared(Key::kTargetPortalGroupTag, "TargetPortalGroupTag", kInAnyLogin, kByTarget),
    declared(Key::kSessionType, "SessionType", kInAnyLogin, kByInitiator),

    negotiated(Key::kHeaderDigest, "HeaderDigest", Rule::kList, 0, 0, 0),
    negotiated(Key::kDataDigest, "DataDigest", Rule::kList, 0, 0, 0),
    negotiated(Key::kMaxConnections, "MaxConnections", Rule::kMinimum, 1, 65535, 1),
    negotiated(Key::kInitialR2T, "InitialR2T", Rule::kOr, 0, 1, 1),
    negotiated(Key::kImmediateData, "ImmediateData", Rule::kAnd, 0, 1, 1),
    {Key::kMaxRecvDataSegmentLength, "MaxRecvDataSegmentLength", Rule::kDeclared,
     kInOperational | kInFullFeature, kByBoth, 512, kLargest, 8192},
    negotiated(Key::kMaxBurstLength, "MaxBurstLength", Rule::kMinimum, 512, kLargest, 262144),
    negotiated(Key::kFirstBurstLength, "FirstBurstLength", Rule::kMinimum, 512, kLargest, 65536),
    negotiated(Key::kDefaultTime2Wait, "DefaultTime2Wait", Rule::kMaximum, 0, 3600, 2),
    negotiated(Key::kDefaultTime2Retain, "DefaultTime2Retain", Rule::kMinimum, 0, 3600, 20),
    negotiated(Key::kMaxOutstandingR2T, "MaxOutstandingR2T", Rule::kMinimum, 1, 65535, 1),
    negotiated(Key::kDataPduInOrder, "DataPDUInOrder", Rule::kOr, 0, 1, 1),
    negotiated(Key::kDataSequenceInOrder, "DataSequenceInOrder", Rule::kOr, 0, 1, 1),
    negotiated(Key::kErrorRecoveryLevel, "ErrorRecoveryLevel", Rule::kMinimum, 0, 2, 0),
    negotiated(Key::kTaskReporting, "TaskReporting", Rule::kList, 0, 0, 0),
    negotiated(Key::kIscsiProtocolLevel, "iSCSIProtocolLevel", Rule::kMinimum, 0, 31, 1),

    obsolete(Key::kIfMarker, "IFMarker", Rule::kRefused),
    obsolete(Key::kOfMarker, "OFMarker", Rule::kRefused),
    obsolete(Key::kIfMarkInt, "IFMarkInt", Rule::kObsolete),
    obsolete(Key::kOfMarkInt, "OFMarkInt", Rule::kObsolete),
}};

constexpr bool in_order() {
  for (unsigned i = 0; i < kKeyCount; ++i) {
    if (static_cast<unsigned>(kTable[i].key) != i) return false;
  }
  return true;
}
static_assert(in_order(), "rule_of() indexes the table by key");

}  // namespace

std::span<const KeyRule> all_keys() { return kTable; }

const KeyRule& rule_of(Key key) { return kTable[static_cast<unsigned>(key)]; }

const KeyRule* find_key(std::string_view name) {
  for (const KeyRule& rule : kTable) {
    if (rule.name == name) return &rule;
  }
  return nullptr;
}

}  // namespace sluice::iscsi
