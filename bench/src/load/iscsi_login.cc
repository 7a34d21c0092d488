#include "load/iscsi_login.h"

#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string_view>

#include "wire/digest.h"
#include "wire/tcp.h"

namespace sluice::bench {

using pdu::Bhs;
using pdu::Opcode;

namespace {

constexpr uint8_t kSecurity = 0;
constexpr uint8_t kOperational = 1;
constexpr uint8_t kFullFeature = 3;
constexpr uint32_t kLoginTag = 0x10adu;
constexpr const char* kDeclared = "MaxRecvDataSegmentLength";  // by each side, for itself

void add_key(std::string* text, std::string_view key, std::string_view value) {
  text->append(key).append("=").append(value).push_back('\0');
}
void add_key(std::string* text, std::string_view key, uint32_t value) {
  add_key(text, key, std::to_string(value));
}
// The key=value pairs of a text, each ended by a zero byte (RFC 7143 §6.1).
template <typename Take>
void for_each_pair(const std::string& text, const Take& take) {
  size_t at = 0;
  while (at < text.size()) {
    const std::string pair = text.c_str() + at;
    at += pair.size() + 1;
    const size_t equals = pair.find('=');
    if (equals != std::string::npos) take(pair.substr(0, equals), pair.substr(equals + 1));
  }
}

const char* yes_no(bool b) { return b ? "Yes" : "No"; }

std::string operational_keys(const IscsiOffer& offer) {
  std::string text;
  add_key(&text, "HeaderDigest", offer.header_digest ? "CRC32C" : "None");
  add_key(&text, "DataDigest", offer.data_digest ? "CRC32C" : "None");
  add_key(&text, "InitialR2T", yes_no(offer.initial_r2t));
  add_key(&text, "ImmediateData", yes_no(offer.immediate_data));
  add_key(&text, kDeclared, offer.segment);
  add_key(&text, "MaxBurstLength", offer.max_burst);
  add_key(&text, "FirstBurstLength", offer.first_burst);
  add_key(&text, "MaxOutstandingR2T", offer.max_r2t);
  add_key(&text, "MaxConnections", 1);
  add_key(&text, "ErrorRecoveryLevel", 0);
  add_key(&text, "DataPDUInOrder", "Yes");
  add_key(&text, "DataSequenceInOrder", "Yes");
  add_key(&text, "DefaultTime2Wait", 2);
  add_key(&text, "DefaultTime2Retain", 0);
  return text;
}

}  // namespace

IscsiLink::IscsiLink(int fd, const IscsiOffer& offer, uint32_t session) : fd_(fd) {
  std::string text;
  add_key(&text, "InitiatorName", offer.initiator);
  add_key(&text, "SessionType", "Normal");
  add_key(&text, "TargetName", offer.target);
  add_key(&text, "AuthMethod", "None");
  login_stage(session, kSecurity, kOperational, text);
  login_stage(session, kOperational, kFullFeature, operational_keys(offer));
  if (parameters_.header_digest != offer.header_digest ||
      parameters_.data_digest != offer.data_digest) {
    die("the target did not agree to the digests asked for");
  }
  header_digest_on_ = parameters_.header_digest;
  data_digest_on_ = parameters_.data_digest;
}

void IscsiLink::login_stage(uint32_t session, uint8_t current, uint8_t next,
                            const std::string& text) {
  offer(text);
  std::string to_send = text;
  for (int rounds = 0; rounds < 8; ++rounds) {
    Bhs request;
    request.bytes[0] = 0x43;  // Login, immediate
    request.set_flags(static_cast<uint8_t>(pdu::kFlagTransit | current << 2 | next));
    request.put8(8, 0x80);  // ISID of the random kind (RFC 7143 §11.12.5)
    request.put16(9, static_cast<uint16_t>(getpid()));
    request.put16(12, static_cast<uint16_t>(session));
    request.set_itt(kLoginTag);
    request.put32(24, cmd_sn_);
    request.put32(28, exp_stat_sn_);
    send(request, to_send);
    Answer answer;
    if (!receive(&answer)) die("the target closed the connection during login");
    if (answer.header.opcode() != Opcode::kLoginResponse) die("no Login Response to a Login");
    const uint32_t status = answer.header.u16(36);
    if (status != 0) {
      char code[8];
      std::snprintf(code, sizeof code, "%04x", status);
      die(std::string("login refused, status ") + code);
    }
    exp_stat_sn_ = answer.header.u32(24) + 1;
    max_cmd_sn_ = answer.header.u32(32);
    learn({answer.data.begin(), answer.data.end()});
    if ((answer.header.flags() & pdu::kFlagTransit) && (answer.header.flags() & 3) == next) return;
    to_send.clear();
  }
  die("the login does not end");
}

// A key without an answer keeps the value offered.
void IscsiLink::offer(const std::string& text) {
  for_each_pair(text, [&](const std::string& key, const std::string& value) {
    session_[key == kDeclared ? "initiator " + key : key] = value;
  });
}

void IscsiLink::learn(const std::string& text) {
  for_each_pair(text, [&](const std::string& key, const std::string& value) {
    session_[key == kDeclared ? "target " + key : key] = value;
    const auto number = static_cast<uint32_t>(std::strtoul(value.c_str(), nullptr, 0));
    if (key == "HeaderDigest") parameters_.header_digest = value == "CRC32C";
    if (key == "DataDigest") parameters_.data_digest = value == "CRC32C";
    if (key == "InitialR2T") parameters_.initial_r2t = value == "Yes";
    if (key == "ImmediateData") parameters_.immediate_data = value == "Yes";
    if (key == kDeclared && number > 0) parameters_.target_segment = number;
    if (key == "MaxBurstLength" && number > 0) parameters_.max_burst = number;
    if (key == "FirstBurstLength" && number > 0) parameters_.first_burst = number;
  });
}

void IscsiLink::send(const Bhs& header, const std::string& data) {
  Bhs out = header;
  out.set_data_length(static_cast<uint32_t>(data.size()));
  std::string bytes(reinterpret_cast<const char*>(out.data()), pdu::kBhsSize);
  if (header_digest_on_) {
    uint8_t digest[kDigestSize];
    digest_store(digest, digest_extend(kDigestStart, out.data(), pdu::kBhsSize));
    bytes.append(reinterpret_cast<const char*>(digest), kDigestSize);
  }
  bytes += data;  // only logins carry any, and those come before digests
  bytes.append(pdu::padded(static_cast<uint32_t>(data.size())) - data.size(), '\0');
  send_all(fd_, bytes.data(), bytes.size());
}

bool IscsiLink::receive(Answer* answer) {
  uint8_t digest[kDigestSize];
  if (!receive_all(fd_, answer->header.data(), pdu::kBhsSize)) return false;
  if (answer->header.ahs_length() != 0) die("the target sent an additional header segment");
  if (header_digest_on_ && !receive_all(fd_, digest, kDigestSize)) return false;
  const uint32_t size = answer->header.data_length();
  answer->data.resize(pdu::padded(size));
  if (!receive_all(fd_, answer->data.data(), answer->data.size())) return false;
  answer->data.resize(size);
  return size == 0 || !data_digest_on_ || receive_all(fd_, digest, kDigestSize);
}

IscsiLink::Outcome IscsiLink::command(uint64_t lun, const uint8_t (&cdb)[16], uint32_t expected) {
  Bhs request;
  request.set_opcode(Opcode::kScsiCommand);
  request.set_flags(static_cast<uint8_t>(pdu::kFlagFinal | (expected ? pdu::kFlagRead : 0) | 1));
  request.set_lun(lun);
  request.set_itt(cmd_sn_);
  request.put32(20, expected);
  request.put32(24, cmd_sn_++);
  request.put32(28, exp_stat_sn_);
  std::memcpy(request.data() + 32, cdb, sizeof cdb);
  send(request, {});
  Outcome outcome;
  for (;;) {
    Answer answer;
    if (!receive(&answer)) die("the target closed the connection");
    const Bhs& h = answer.header;
    if (h.opcode() == Opcode::kReject) die("the target rejected a command");
    if (h.opcode() != Opcode::kDataIn && h.opcode() != Opcode::kScsiResponse) continue;
    max_cmd_sn_ = h.u32(32);
    if (h.opcode() == Opcode::kDataIn) {
      outcome.data.insert(outcome.data.end(), answer.data.begin(), answer.data.end());
      if (!(h.flags() & pdu::kFlagStatus)) continue;
    }
    exp_stat_sn_ = h.u32(24) + 1;
    outcome.status = h.u8(3);
    return outcome;
  }
}

IscsiLink::Capacity IscsiLink::capacity(uint64_t lun) {
  const uint8_t test_unit_ready[16] = {};
  uint8_t status = 1;
  for (int i = 0; i < 8 && status != 0; ++i) status = command(lun, test_unit_ready, 0).status;
  if (status != 0) die("the LUN is not ready (TEST UNIT READY fails)");
  const uint8_t read_capacity[16] = {0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0};
  const Outcome outcome = command(lun, read_capacity, 32);
  if (outcome.status != 0 || outcome.data.size() < 12) die("READ CAPACITY(16) fails");
  return {.blocks = load_be64(outcome.data.data()) + 1,
          .block_size = load_be32(outcome.data.data() + 8)};
}

void IscsiLink::logout(uint32_t cmd_sn, uint32_t exp_stat_sn) {
  Bhs request;
  request.bytes[0] = 0x46;  // Logout, immediate
  request.set_flags(pdu::kFlagFinal);
  request.set_itt(kLoginTag);
  request.put32(24, cmd_sn);
  request.put32(28, exp_stat_sn);
  send(request, {});
  Answer answer;
  while (receive(&answer) && answer.header.opcode() != Opcode::kLogoutResponse) {
  }
}

}  // namespace sluice::bench
