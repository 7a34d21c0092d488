// One TCP connection of the protocol core: bytes in, bytes out, without a socket. It performs the
// login, carries one session, and ends.
//
// Threads: one reactor. Life: its carrier (net/ or a test) owns it and may destroy it when over()
// is true; before that, its commands may still be in a backend.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "iscsi/connection_ends.h"
#include "iscsi/connection_journal.h"
#include "iscsi/host_faults.h"
#include "iscsi/login/login.h"
#include "iscsi/login_admission.h"
#include "iscsi/login_exchange.h"
#include "iscsi/nexus_claim.h"
#include "iscsi/outbox.h"
#include "iscsi/session.h"
#include "iscsi/session_access.h"
#include "iscsi/session_view.h"
#include "iscsi/shard.h"
#include "iscsi/stream.h"
#include "pdu/framer.h"

namespace sluice::iscsi {

class Connection final : public ProtocolEndpoint, public SessionHost {
 public:
  using Ends = ConnectionEnds;
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
  void record_fault(HostFaultKind kind, std::string_view reason) override;
  void finish() override;
  void output_ready() override { transport_.schedule_flush(); }

 private:
  enum class State : uint8_t {
    kLogin,        // receives login requests
    kClaiming,     // waits until the directory grants the nexus
    kRefusing,     // delays a failing answer (login_throttle.h)
    kFullFeature,  // has a session
    kEnding,       // the transport is closed, or closes; the session aborts its commands
    kOver,         // everything is released
  };
  // How the transport closes.
  enum class Close : uint8_t {
    kAlreadyClosed,
    kDiscard,  // drops queued output
    kFlush,    // sends queued output first
  };

  bool may_follow(State to) const;
  void enter(State to);
  bool ending() const { return state_ >= State::kEnding; }
  void on_event(pdu::Framer::Event event);
  void on_login_pdu();
  void send_login_answer();
  void login_succeeded();
  void login_failed();
  ConnectionJournal::Peer peer() const;
  void refuse_login(LoginStatus status, const char* reason);
  std::shared_ptr<lun::Nexus> open_nexus(const Parameters& p) const;
  void open_session(uint16_t tsih);
  void ask_to_leave(std::string_view why);
  void end(bool lost, Close how);
  void drained();

  Shard& shard_;
  Transport& transport_;
  const uint64_t id_;
  const Ends ends_;
  State state_ = State::kLogin;
  NexusClaim claim_;
  pdu::Framer framer_;
  Outbox out_;
  ConnectionJournal journal_;
  LoginAdmission admission_;
  SessionAccess access_;
  std::unique_ptr<LoginExchange> login_;  // null once the session is open
  std::unique_ptr<Session> session_;
  Nanos answer_at_ = 0;  // in kRefusing: when the answer is sent
  Nanos leave_by_ = 0;   // deadline of a requested logout; 0: none
  uint16_t tsih_ = 0;
  Nanos opened_;
  Nanos last_received_;
  uint64_t received_bytes_ = 0;
  uint64_t sent_bytes_ = 0;
};

}  // namespace sluice::iscsi
