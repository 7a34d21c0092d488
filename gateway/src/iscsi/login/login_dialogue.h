// For tests: an initiator that talks to Login, and a gateway with some targets.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/reactors.h"
#include "iscsi/login/login.h"
#include "nexus/exports.h"

namespace sluice::iscsi {

// T, C, CSG and NSG in byte 1 (RFC 7143 §11.12).
inline constexpr uint8_t kSecurityStays = 0x00;
inline constexpr uint8_t kSecurityToOperational = 0x81;
inline constexpr uint8_t kSecurityToFull = 0x83;
inline constexpr uint8_t kOperationalStays = 0x04;
inline constexpr uint8_t kOperationalToFull = 0x87;
inline constexpr uint8_t kMoreText = 0x40;

inline constexpr std::string_view kOpenTarget = "iqn.2026-11.dev.sluice:open";
inline constexpr std::string_view kChapTarget = "iqn.2026-11.dev.sluice:chap";
inline constexpr std::string_view kMutualTarget = "iqn.2026-11.dev.sluice:mutual";
inline constexpr std::string_view kPrivateTarget = "iqn.2026-11.dev.sluice:private";
inline constexpr std::string_view kHost = "iqn.1994-05.com.redhat:host";

using Keys = std::vector<std::string>;

inline std::string text_of(const Keys& keys) {
  std::string text;
  for (const std::string& key : keys) text += key + '\0';
  return text;
}

inline Keys keys_of(std::string_view text) {
  Keys keys;
  while (!text.empty()) {
    const size_t end = text.find('\0');
    keys.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return keys;
}

struct Reply {
  Login::Outcome outcome;
  LoginAnswer answer;
  uint8_t flags() const { return answer.header.flags(); }
  uint16_t status() const { return answer.header.u16(36); }
  Keys keys() const { return keys_of(answer.text); }
};

// Runs nothing that is posted to it; a SessionDirectory needs one.
class IdleReactors final : public Reactors {
 public:
  unsigned count() const override { return 1; }
  unsigned current() const override { return 0; }
  void post(unsigned, std::function<void()>) override {}
};

// Targets: open to all, with CHAP, with mutual CHAP, and one for a different host only.
class LoginDialogue {
 public:
  LoginDialogue() {
    add_target(kOpenTarget, {});
    lun::HostAccess chap;
    chap.chap = {"user", "a secret of 16 b"};
    add_target(kChapTarget, chap);
    chap.mutual = {"target", "another secret!!"};
    add_target(kMutualTarget, chap);
    lun::HostAccess closed;
    closed.initiators = {"iqn.2026-11.example:other"};
    closed.read_only = true;
    add_target(kPrivateTarget, closed);
    exports.set_portals({{"192.0.2.1:3260", 1, 1}});
    setup.exports = &exports;
    setup.tpgt = 7;
    setup.local_address = "192.0.2.1:3260";
    setup.random = [](uint8_t* out, size_t n) {
      for (size_t i = 0; i < n; ++i) out[i] = static_cast<uint8_t>(0xa0 + i);
    };
    header.bytes[0] = 0x43;
    const uint8_t isid[] = {0x40, 0x00, 0x01, 0x37, 0x00, 0x05};
    std::copy_n(isid, 6, header.data() + 8);
    header.set_itt(0x1234);
    header.put16(20, 9);     // CID
    header.put32(24, 0x64);  // CmdSN
  }

  void add_target(std::string_view name, const lun::HostAccess& access, std::string alias = "") {
    auto target = std::make_shared<lun::Target>(std::string(name), std::move(alias), uint16_t{1});
    target->set_hosts({access});
    exports.add(std::move(target));
  }

  Login& login() {
    if (!login_) login_ = std::make_unique<Login>(setup);
    return *login_;
  }
  void again() { login_.reset(); }

  Reply send_text(uint8_t flags, std::string_view text) {
    header.set_flags(flags);
    header.set_data_length(static_cast<uint32_t>(text.size()));
    Reply reply{};
    reply.outcome = login().on_request(header, as_bytes(text), &reply.answer);
    return reply;
  }
  Reply send(uint8_t flags, const Keys& keys) { return send_text(flags, text_of(keys)); }

  // The names in a first request, followed by `more`.
  static Keys names(std::string_view target, const Keys& more = {}) {
    Keys keys = {"InitiatorName=" + std::string(kHost), "SessionType=Normal",
                 "TargetName=" + std::string(target)};
    keys.insert(keys.end(), more.begin(), more.end());
    return keys;
  }

  lun::Exports exports;
  Login::Setup setup;
  pdu::Bhs header;  // of the next request; send() sets flags and length

 private:
  std::unique_ptr<Login> login_;
};

}  // namespace sluice::iscsi
