// One TCP connection of the protocol core: bytes in, bytes out, without a socket. It performs the
// login, carries one session, and ends.
//
// - kLogin -> kClaiming -> kFullFeature -> kEnding -> kOver
// - kLogin -> kRefusing -> kEnding -> kOver: a failing answer is delayed (login_throttle.h)
//
// Threads: one reactor. Life: its carrier (net/ or a test) owns it and may destroy it when over()
// is true; before that, its commands may still be in a backend.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "iscsi/login/login.h"
#include "iscsi/login/login_throttle.h"
#include "iscsi/outbox.h"
#include "iscsi/pdu_writer.h"
#include "iscsi/session.h"
#include "iscsi/session_directory.h"
#include "iscsi/session_view.h"
#include "iscsi/shard.h"
#include "iscsi/stream.h"
#include "pdu/framer.h"

namespace sluice::iscsi {

class Connection final : public ProtocolEndpoint, public SessionHost {
 public:
  struct Ends {
    uint16_t tpgt = 1;  // of the portal
    uint16_t relative_port = 1;
    std::string local_address;  // "ip:port"
    std::string peer_address;
    std::string peer_network = {};  // kernel_address_network() of the peer's address
    bool forwarding = false;        // a portal for gateways (forwarding_wire.h)
  };
  Connection(Shard& shard, Transport& transport, uint64_t id, Ends ends);
  ~Connection() override;
  Connection(const Connection&) = delete;

  // Bytes from the peer, in order; all of them are consumed.
  void receive(Slice bytes) override;
  // The carrier has sent `bytes`; their memory is free again.
  void on_sent(size_t bytes) override;
  // The peer or the carrier closed the connection, or the socket failed. Ends the session as lost.
  void on_closed() override;
  void tick() override;
  // The reactor has buffers again.
  void resume();
  // Orderly stop: requests a logout within `seconds`; ends a login immediately.
  void ask_logout(uint16_t seconds);

  // --- called by the session directory through Shard::connections
  void end_session();
  void granted(uint16_t tsih);
  // Targets or hosts changed. If the session has lost its access, requests a logout, and drops the
  // session after limits::kEvictionLogout.
  void review_access();
  // An administrator ends the session: requests a logout as review_access() does.
  void evict();
  // Closes an unauthenticated connection immediately to admit another one.
  void make_room();
  uint16_t tsih() const { return tsih_; }  // 0 before full feature phase

  Outbox& outbox() override { return out_; }
  uint64_t id() const { return id_; }
  bool over() const override { return state_ == State::kOver; }
  bool in_full_feature() const { return session_ != nullptr; }
  void describe(SessionView* view) const;

  // --- SessionHost
  void drop(std::string why) override;
  void finish() override;
  void output_ready() override { transport_.schedule_flush(); }

 private:
  enum class State : uint8_t { kLogin, kRefusing, kClaiming, kFullFeature, kEnding, kOver };

  void on_event(pdu::Framer::Event event);
  void on_login_pdu();
  void send_login_answer();
  void login_succeeded();
  void login_failed(LoginStatus status, const std::string& reason);
  // Why the initiator of `p` may not use its target. kSuccess: it may; *access has its rights.
  struct Barred {
    LoginStatus status = LoginStatus::kSuccess;
    const char* why = "";
  };
  Barred barred(const Parameters& p, lun::HostAccess* access) const;
  bool from_fenced() const;
  // Whether the forwarding gateway is a peer with this incarnation.
  bool from_peer() const;
  std::shared_ptr<lun::Nexus> open_nexus(const Parameters& p) const;
  void open_session(uint16_t tsih);
  void refuse_login(LoginStatus status, const char* reason);
  // --- connection_access.cc
  LoginPeer peer_of(std::string_view initiator) const;
  bool may_try(std::string_view initiator);
  Nanos hold_refusal(LoginStatus status);
  void note_success(const Parameters& p);
  void ask_to_leave(std::string_view why);
  void count_login(size_t slot);
  void begin_end(bool lost);
  void drained();
  SessionKey key() const;

  Shard& shard_;
  Transport& transport_;
  const uint64_t id_;
  const Ends ends_;
  State state_ = State::kLogin;
  bool transport_closed_ = false;  // the carrier closed it, or was asked to
  bool claimed_ = false;           // the directory knows this connection by key_
  bool login_counted_ = false;
  SessionKey key_;
  pdu::Framer framer_;
  Outbox out_;
  PduWriter writer_;
  std::unique_ptr<Login> login_;
  LoginAnswer answer_;  // the last one, stored while the nexus is claimed
  uint32_t login_stat_sn_ = 0;
  uint32_t login_cmd_sn_ = 0;
  uint16_t cid_ = 0;
  Origin origin_;  // of a forwarding session
  std::unique_ptr<Session> session_;
  std::weak_ptr<lun::Target> target_;  // of the session
  bool response_evaluated_ = true;     // whether a CHAP response was evaluated
  Nanos answer_at_ = 0;                // when the failing answer is sent
  Nanos leave_by_ = 0;                 // deadline of a requested logout; 0: none
  uint16_t tsih_ = 0;
  Nanos opened_;
  Nanos last_heard_;
  uint64_t received_bytes_ = 0;
  uint64_t sent_bytes_ = 0;
};

}  // namespace sluice::iscsi
