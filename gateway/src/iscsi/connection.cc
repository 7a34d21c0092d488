#include "iscsi/connection.h"

#include <cassert>
#include <optional>
#include <utility>

#include "base/limits.h"
#include "base/safety_mutation.h"
#include "iscsi/counters.h"

namespace sluice::iscsi {
namespace {

using Event = pdu::Framer::Event;

}  // namespace

Connection::Connection(Shard& shard, Transport& transport, uint64_t id, Ends ends)
    : shard_(shard),
      transport_(transport),
      id_(id),
      ends_(std::move(ends)),
      claim_(shard.gateway->directory, {shard.context.reactor, id}),
      journal_(shard, ends_),
      admission_(shard, ends_),
      access_(*shard.gateway, ends_.forwarding),
      opened_(shard.now),
      last_received_(shard.now) {
  Login::Setup setup;
  setup.exports = shard.gateway->exports;
  setup.sessions = shard.gateway->directory;
  setup.offer = shard.gateway->settings.offer;
  setup.tpgt = ends_.tpgt;
  setup.local_address = ends_.local_address;
  setup.random = shard.gateway->random;
  setup.may_try = [this](std::string_view initiator) { return admission_.may_try(initiator); };
  if (ends_.forwarding) {
    setup.forwarding = &shard.gateway->forwarding;
    // The data transfer mode that forwarders support (forwarding_wire.h); another peer is not a
    // forwarder.
    setup.offer.initial_r2t = false;
    setup.offer.immediate_data = true;
  }
  login_ = std::make_unique<LoginExchange>(std::move(setup), out_);
  shard_.connections[id_] = this;
  shard_.gateway->connections.fetch_add(1, std::memory_order_relaxed);
  shard_.counters->connections_opened.add();
}

Connection::~Connection() {
  shard_.connections.erase(id_);
  shard_.gateway->connections.fetch_sub(1, std::memory_order_relaxed);
  shard_.counters->connections_closed.add();
}

bool Connection::may_follow(State to) const {
  switch (to) {
    case State::kLogin:
      return false;  // the first
    case State::kClaiming:
      return state_ == State::kLogin;
    case State::kRefusing:
      return state_ == State::kLogin || state_ == State::kClaiming;
    case State::kFullFeature:  // from kLogin: a discovery session has no nexus
      return state_ == State::kLogin || state_ == State::kClaiming;
    case State::kEnding:
      return state_ < State::kEnding;
    case State::kOver:
      return state_ == State::kEnding;
  }
  return false;
}

void Connection::enter(State to) {
  assert(may_follow(to));
  state_ = to;
}

void Connection::receive(Slice bytes) {
  received_bytes_ += bytes.size;
  shard_.counters->received_bytes.add(bytes.size);
  // DESIGN R6: the host may have repeated its commands on another path.
  if (session_ && session_->liveness().answers_pings() &&
      shard_.now - session_->liveness().confirmed_until() >= limits::kDiscardSilence &&
      !mutation_disables(Guard::kAge)) {
    shard_.counters->stale_discards.add(bytes.size);
    return drop("silent for too long, what it says now may be stale");
  }
  last_received_ = shard_.now;
  while (state_ == State::kLogin || state_ == State::kFullFeature) {
    const Event event = framer_.next(bytes);
    if (event == Event::kNeedMore) break;
    on_event(event);
    // Releases unused data now: an idle session holds no receive buffer.
    framer_.pdu().data.clear();
  }
  // Commands respect kMaxOutputBytes. Only an initiator that requests answers (NOPs, rejects)
  // faster than it reads them exceeds this limit.
  if (out_.bytes() > limits::kMaxTransferBytes + 2 * limits::kMaxOutputBytes) {
    drop("answers are not read");
  }
  // RFC 7143 §6.3: an initiator sends nothing between its last login request and the answer.
  if (state_ == State::kClaiming && bytes.size != 0) drop("data before the login response");
}

void Connection::on_event(Event event) {
  shard_.counters->received_pdus.add();
  if (event == Event::kPdu && session_) [[likely]] {
    return session_->on_pdu(framer_.pdu());
  }
  switch (event) {
    case Event::kPdu:
      return on_login_pdu();
    case Event::kDataDigestError:
      shard_.counters->data_digest_failures.add();
      record_fault(HostFaultKind::kDigestError, "the data digest of a PDU is wrong");
      return session_->on_data_digest_error(framer_.pdu());
    case Event::kHeaderDigestError:
      shard_.counters->header_digest_failures.add();
      record_fault(HostFaultKind::kDigestError,
                   "the header digest of a PDU is wrong, so the connection was closed");
      return drop("header digest error");
    case Event::kSegmentTooLong:
      return drop("data segment longer than MaxRecvDataSegmentLength");
    case Event::kAhsTooLong:
      return drop("additional header segment too long");
    case Event::kNeedMore:
      break;
  }
}

void Connection::on_login_pdu() {
  transport_.progressed();
  switch (login_->on_pdu(framer_.pdu())) {
    case Login::Outcome::kContinue:
      return send_login_answer();
    case Login::Outcome::kFailed:
      return login_failed();
    case Login::Outcome::kSucceeded:
      return login_succeeded();
    case Login::Outcome::kDrop:
      return drop("login dropped: " + login_->reason());
  }
}

void Connection::send_login_answer() {
  login_->send_answer(session_ ? &session_->window() : nullptr);
  transport_.schedule_flush();
}

void Connection::login_failed() {
  const LoginStatus status = login_->status();
  admission_.count(login_slot(status));
  journal_.login_refused(peer(), status, login_->reason());
  const Nanos delay = admission_.delay_of_refusal(status, login_->login().initiator());
  if (delay > 0) {
    shard_.counters->logins_delayed.add();
    enter(State::kRefusing);
    answer_at_ = shard_.now + delay;
    return;
  }
  send_login_answer();
  finish();
}

void Connection::record_fault(HostFaultKind kind, std::string_view reason) {
  journal_.fault(peer(), kind, reason);
}

ConnectionJournal::Peer Connection::peer() const {
  if (session_) {
    const Parameters& p = session_->parameters();
    return {.initiator = p.initiator_name, .target = p.target_name, .in_session = true};
  }
  if (!login_) return {};
  return {.initiator = login_->login().initiator(), .target = login_->login().target_name()};
}

void Connection::refuse_login(LoginStatus status, const char* reason) {
  login_->refuse(status, reason);
  login_failed();
}

void Connection::login_succeeded() {
  // Reported now and not when the session opens: a claim may wait long for a backend, and must not
  // block other logins.
  const Login& login = login_->login();
  const Parameters& who = login.parameters();
  if (!who.discovery || proven(who)) transport_.authenticated();
  const uint16_t tsih = login.requested_tsih();
  access_.set(login.origin(), login.target());
  if (who.discovery) {
    if (tsih != 0) return refuse_login(LoginStatus::kSessionDoesNotExist, "TSIH of no session");
    return open_session(shard_.gateway->directory->take_tsih());
  }
  NexusClaim::Request request;
  request.key = {who.initiator_name, who.isid, who.target_name, who.tpgt, who.forwarded_by};
  request.nexus = {login.origin().incarnation, login.origin().nexus};
  request.tsih = tsih;
  request.cid = login.cid();
  if (const auto refusal = claim_.refusal(request)) {
    return refuse_login(refusal->status, refusal->reason);
  }
  enter(State::kClaiming);
  claim_.take(std::move(request));
}

void Connection::granted(uint16_t tsih) {
  // A connection that ended while it waited has released its claim.
  if (state_ == State::kClaiming) open_session(tsih);
}

void Connection::open_session(uint16_t tsih) {
  tsih_ = tsih;
  Session::Start start;
  start.parameters = login_->login().parameters();
  if (!start.parameters.discovery) {
    // A reload may have changed the access since the lookup; a later one finds this session in the
    // directory.
    const SessionAccess::Verdict access = access_.check(start.parameters);
    if (!access.admitted()) return refuse_login(access.status, access.why);
    start.parameters.read_only = access.read_only;
  }
  start.local_address = ends_.local_address;
  start.tsih = tsih;
  start.cid = login_->login().cid();
  start.cmd_sn = login_->login().first_cmd_sn();
  start.stat_sn = login_->stat_sn() + 1;  // after the answer that is about to be sent
  if (!start.parameters.discovery) start.nexus = open_nexus(start.parameters);
  session_ = std::make_unique<Session>(shard_, *this, out_, std::move(start));
  enter(State::kFullFeature);
  login_->accept(tsih);
  send_login_answer();
  const Parameters& p = session_->parameters();
  framer_.set_max_segment(p.max_recv_data_segment_length);
  framer_.set_max_ahs(limits::kMaxAhsBytes);
  framer_.set_digests(p.header_digest, p.data_digest);
  session_->greet();
  (p.discovery ? shard_.counters->discovery_opened : shard_.counters->sessions_opened).add();
  admission_.count(login_slot(LoginStatus::kSuccess));
  admission_.record_success(p);
  journal_.session_opened(tsih, p);
  login_.reset();
}

// A forwarded nexus belongs to the gateway to which its host is connected, so it never equals one
// of this gateway's own (DESIGN R9).
std::shared_ptr<lun::Nexus> Connection::open_nexus(const Parameters& p) const {
  const std::shared_ptr<lun::Target>& target = login_->login().target();
  lun::NexusId id{p.initiator_name, p.isid, ends_.tpgt,
                  target->relative_port_of(ends_.tpgt).value_or(ends_.relative_port)};
  if (ends_.forwarding) {
    id.target_portal_group = access_.origin().tpgt;
    id.relative_target_port = access_.origin().relative_port;
  }
  return lun::Nexus::open(target, std::move(id), shard_.context, p.read_only,
                          ends_.forwarding ? std::optional(p.host_age) : std::nullopt);
}

void Connection::drop(std::string why) {
  if (ending()) return;
  if (session_) shard_.counters->protocol_errors.add();
  if (!session_) {
    admission_.count(kLoginDropped);
    // A peer that has not named itself may be a program that looks for open ports.
    if (login_ && !login_->login().initiator().empty()) {
      record_fault(HostFaultKind::kLoginRefused, "closed without an answer: " + why);
    }
  }
  journal_.dropped(tsih_, why);
  end(true, Close::kDiscard);
}

void Connection::finish() {
  if (!ending()) end(false, Close::kFlush);
}

void Connection::on_closed() {
  // An incomplete PDU will never complete: its receive buffers are released now, not when the last
  // command has left the backend.
  framer_.pdu().data.clear();
  if (!ending()) end(true, Close::kAlreadyClosed);
}

void Connection::end_session() {
  if (ending()) return;
  if (session_) shard_.counters->sessions_reinstated.add();
  end(true, Close::kDiscard);
}

void Connection::make_room() {
  if (ending()) return;
  if (!session_) admission_.count(kLoginDropped);
  shard_.counters->connections_evicted.add();
  end(true, Close::kDiscard);
}

void Connection::end(bool lost, Close how) {
  enter(State::kEnding);
  if (how != Close::kAlreadyClosed) transport_.close(how == Close::kDiscard);
  if (!session_) return drained();
  session_->close(lost, [this] { claim_.release(); }, [this] { drained(); });
}

void Connection::drained() {
  enter(State::kOver);
  if (session_) {
    const bool discovery = session_->parameters().discovery;
    admission_.record_success(session_->parameters());
    (discovery ? shard_.counters->discovery_closed : shard_.counters->sessions_closed).add();
    journal_.session_over(tsih_, session_->parameters());
    if (discovery) shard_.gateway->directory->give_back_tsih(tsih_);
  }
  claim_.release();
  transport_.over();
}

void Connection::on_sent(size_t bytes) {
  sent_bytes_ += bytes;
  shard_.counters->sent_bytes.add(bytes);
  if (session_) session_->resume();
}

void Connection::resume() {
  if (session_) session_->resume();
}

void Connection::tick() {
  const Nanos now = shard_.now;
  // Commands of an ending session may still be in the backend.
  if (state_ == State::kEnding && session_) session_->tick(last_received_);
  if (ending()) return;
  if (leave_by_ != 0 && now >= leave_by_) return drop("asked to leave, it did not log out");
  // Discovery sessions are not in the directory, which notifies all others of a change of peers.
  if (ends_.forwarding && session_ && session_->parameters().discovery && !access_.from_peer()) {
    return drop("the gateway is no longer a peer");
  }
  if (session_) {
    session_->tick(last_received_);
    if (!ending()) session_->resume();
    return;
  }
  if (state_ == State::kRefusing) {
    if (now < answer_at_) return;
    send_login_answer();
    return finish();
  }
  if (now - opened_ >= transport_.login_timeout(shard_.gateway->settings.login_timeout)) {
    admission_.count(kLoginTimedOut);
    drop("login not finished in time");
  }
}

void Connection::ask_logout(uint16_t seconds) {
  if (session_ && !session_->parameters().discovery) return session_->ask_logout(seconds);
  end_session();
}

// A gateway that was replaced by another incarnation is dropped immediately. A gateway that is no
// longer a peer may complete its commands within limits::kEvictionLogout, because leaving a path
// set looks the same.
void Connection::review_access() {
  if (state_ != State::kFullFeature) return;
  if (access_.fenced()) return drop("the gateway that forwards is fenced");
  if (ends_.forwarding && !access_.from_peer() && access_.replaced()) {
    return drop("the gateway that forwards was replaced by another process");
  }
  if (leave_by_ != 0) return;
  const Parameters& p = session_->parameters();
  const SessionAccess::Verdict access = access_.check(p);
  // A later login would be read-only.
  if (access.admitted() && (p.read_only || !access.read_only)) return;
  ask_to_leave(access.admitted() ? "read-only" : access.why);
}

void Connection::evict() {
  if (state_ == State::kFullFeature && leave_by_ == 0) ask_to_leave("evicted");
}

void Connection::ask_to_leave(std::string_view why) {
  leave_by_ = shard_.now + limits::kEvictionLogout;
  journal_.session_asked_to_leave(tsih_, session_->parameters(), why);
  session_->ask_logout(static_cast<uint16_t>(limits::kEvictionLogout / kSecond));
}

void Connection::describe(SessionView* view) const {
  session_->describe(view);
  view->initiator_address = ends_.peer_address;
  view->target_address = ends_.local_address;
  view->reactor = shard_.context.reactor;
  view->silence = shard_.now - last_received_;
  view->received_bytes = received_bytes_;
  view->sent_bytes = sent_bytes_;
}

}  // namespace sluice::iscsi
