// One session with another gateway, from dial to end: login, PDUs in both directions, sequence
// numbers. Its user interprets the PDUs (link.h, probe.h).
//
//   dialled -> login -> open -> over
//
// Threads: one reactor. Life: shared between its user and its carrier. The user detaches with
// close() and gets no callbacks after that.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "forward/dialer.h"
#include "forward/initiator_login.h"
#include "iscsi/pdu_writer.h"
#include "pdu/framer.h"

namespace sluice::forward {

enum class Ending : uint8_t {
  kRefused,       // no listener, or a reset before the end of the login
  kSilent,        // no answer in time
  kLoginRefused,  // by either side; see Stream::reason()
  kLost,          // it was open
};

class StreamUser {
 public:
  virtual ~StreamUser() = default;
  virtual void on_open() = 0;
  virtual void on_pdu(pdu::Pdu& pdu) = 0;
  // The stream has ended; sent output may or may not have arrived.
  virtual void on_ended(Ending why) = 0;
};

class Stream final : public Caller {
 public:
  // `now`: the reactor's time of the current batch.
  Stream(StreamUser& user, InitiatorLogin::Setup setup, const Nanos* now);

  // --- called by the user
  bool open() const { return state_ == State::kOpen; }
  const iscsi::Parameters& parameters() const { return login_.parameters(); }
  uint16_t login_status() const { return login_.status(); }
  const std::string& reason() const { return reason_; }
  iscsi::PduWriter& writer() { return writer_; }
  // Sets ITT, CmdSN and ExpStatSN of a request that was started with writer().
  void number(pdu::Bhs& request, uint32_t itt, bool immediate);
  bool window_open() const;
  uint32_t next_cmd_sn() const { return cmd_sn_; }
  Nanos last_received() const { return last_received_; }
  // Output was written.
  void flush();
  // Detaches the user. The connection is reset; unsent output is dropped.
  void close();

  // --- Caller
  void connected(iscsi::Transport& transport) override;
  void unreachable(bool refused) override;
  void receive(Slice bytes) override;
  void on_sent(size_t) override {}
  void on_closed() override;
  void tick() override;
  void drop(std::string why) override;
  iscsi::Outbox& outbox() override { return out_; }
  bool over() const override { return state_ == State::kOver; }

 private:
  enum class State : uint8_t { kDialled, kLogin, kOpen, kOver };
  void on_event(pdu::Framer::Event event);
  void on_login_response(pdu::Pdu& pdu);
  void send_login(const InitiatorLogin::Request& request);
  void note_numbers(const pdu::Bhs& header);
  void end(Ending why);

  StreamUser* user_;
  InitiatorLogin login_;
  const Nanos* now_;
  State state_ = State::kDialled;
  iscsi::Transport* transport_ = nullptr;
  pdu::Framer framer_;
  iscsi::Outbox out_;
  iscsi::PduWriter writer_;
  uint32_t cmd_sn_ = 1;
  uint32_t max_cmd_sn_ = 0;
  uint32_t exp_stat_sn_ = 0;
  Nanos since_;  // of the current state
  Nanos last_received_;
  std::string reason_;
};

}  // namespace sluice::forward
