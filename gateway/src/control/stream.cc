#include "control/stream.h"

#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <fstream>
#include <mutex>
#include <random>
#include <sstream>
#include <thread>

#include "base/log.h"
#include "base/log_repeats.h"
#include "base/socket_address.h"
#include "sluice/v1/gateway_stream.grpc.pb.h"

namespace sluice::control {
namespace {

using Clock = std::chrono::steady_clock;
using Call = grpc::ClientReaderWriterInterface<wire::ConnectRequest, wire::ConnectResponse>;

Result<std::string> contents(const std::string& path, const char* what) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.str().empty()) {
    return Error{"can't read the " + std::string(what) + " " + path + "; name a readable PEM file"};
  }
  return text.str();
}

Result<std::shared_ptr<grpc::ChannelCredentials>> credentials(const StreamOptions& options) {
  if (options.insecure_loopback) return grpc::InsecureChannelCredentials();
  Result<std::string> ca = contents(options.tls.ca, "CA certificate");
  if (!ca) return Error{ca.error()};
  Result<std::string> certificate = contents(options.tls.certificate, "certificate");
  if (!certificate) return Error{certificate.error()};
  Result<std::string> key = contents(options.tls.key, "private key");
  if (!key) return Error{key.error()};
  grpc::SslCredentialsOptions ssl;
  ssl.pem_root_certs = *ca;
  ssl.pem_cert_chain = *certificate;
  ssl.pem_private_key = *key;
  return grpc::SslCredentials(ssl);
}

grpc::ChannelArguments channel_arguments() {
  constexpr int kSilence = static_cast<int>(limits::kStreamSilence / kMillisecond);
  grpc::ChannelArguments arguments;
  // A replica whose machine failed sends no TCP reset.
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, kSilence);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kSilence);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // The channel shares no backoff with others and ignores proxies from the environment.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(limits::kStreamMessageBytes);
  return arguments;
}

Result<void> check(const StreamOptions& options) {
  if (options.endpoints.empty()) return Error{"no endpoint of the control plane is given"};
  if (options.endpoints.size() > limits::kMaxEndpoints) {
    return Error{"at most " + std::to_string(limits::kMaxEndpoints) + " endpoints are tried"};
  }
  if (!options.insecure_loopback) return {};
  for (const std::string& endpoint : options.endpoints) {
    const Result<SocketAddress> address = parse_socket_address(endpoint, 0);
    if (!address || !address.value().loopback() || address.value().port == 0) {
      return Error{"endpoint " + endpoint +
                   ": without TLS only a numeric loopback address with its port is allowed; give "
                   "ca, certificate and key"};
    }
  }
  return {};
}

Clock::duration nanos(Nanos n) { return std::chrono::nanoseconds(n); }

class StreamImpl final : public Stream {
 public:
  StreamImpl(StreamOptions options, StreamCallbacks callbacks)
      : options_(std::move(options)), callbacks_(std::move(callbacks)), random_(seed()) {}
  ~StreamImpl() override { StreamImpl::stop(); }

  void begin() override {
    reader_ = std::thread([this] { run(); });
  }

  bool request(wire::ConnectRequest message) override {
    const std::lock_guard lock(mutex_);
    if (!welcomed_ || queue_.size() >= limits::kStreamQueue) return false;
    queue_.push_back(std::move(message));
    changed_.notify_all();
    return true;
  }

  void observe(wire::ConnectRequest message) override {
    const std::lock_guard lock(mutex_);
    if (!welcomed_) return;
    if (queue_.size() >= limits::kStreamQueue) {
      end_locked("the replica doesn't take what is sent");
      return;
    }
    queue_.push_back(std::move(message));
    changed_.notify_all();
  }

  void reconnect(const std::string& why) override {
    const std::lock_guard lock(mutex_);
    end_locked(why);
  }

  bool connected() const override {
    const std::lock_guard lock(mutex_);
    return welcomed_;
  }

  void stop() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      end_locked("the gateway stops");
      changed_.notify_all();
    }
    if (reader_.joinable()) reader_.join();
  }

 private:
  static uint64_t seed() {
    std::random_device device;
    return uint64_t{device()} << 32 | device();
  }

  void end_locked(const std::string& why) {
    if (context_ == nullptr || ended_) return;
    ended_ = true;
    end_reason_ = why;
    context_->TryCancel();
    changed_.notify_all();
  }

  bool stopping() const {
    const std::lock_guard lock(mutex_);
    return stopping_;
  }

  // Tries the replicas in order, from a random one, so that gateways spread over them.
  void run() {
    size_t next = random_() % options_.endpoints.size();
    unsigned failures = 0;
    while (!stopping()) {
      const std::string& endpoint = options_.endpoints[next];
      next = (next + 1) % options_.endpoints.size();
      const Clock::time_point begun = Clock::now();
      const std::string why = one_stream(endpoint);
      if (stopping()) return;
      failures = Clock::now() - begun >= nanos(limits::kStreamSettled) ? 0 : failures + 1;
      std::string cause = endpoint;
      cause += ' ';
      cause += why;
      log::repeated(log::Level::kWarning, cause, "no stream to the control plane",
                    {{"endpoint", endpoint}, {"reason", why}});
      pause(failures);
    }
  }

  void pause(unsigned failures) {
    const unsigned doublings = std::min(failures == 0 ? 0u : failures - 1, 16u);
    const Nanos most = std::min(options_.backoff_least << doublings, options_.backoff_most);
    // Half is jitter, so that gateways that lost a replica together do not reconnect together.
    const Nanos wait =
        most / 2 + static_cast<Nanos>(random_() % static_cast<uint64_t>(most / 2 + 1));
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, nanos(wait), [this] { return stopping_; });
  }

  // Runs one stream from connect to end; returns why it ended.
  std::string one_stream(const std::string& endpoint) {
    Result<std::shared_ptr<grpc::ChannelCredentials>> secret = credentials(options_);
    if (!secret) return secret.error();
    const auto channel = grpc::CreateCustomChannel(endpoint, *secret, channel_arguments());
    const auto stub = ::sluice::v1::GatewayStreamService::NewStub(channel);
    grpc::ClientContext context;
    wire::ConnectRequest hello;
    *hello.mutable_hello() = callbacks_.hello();
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return "the gateway stops";
      context_ = &context;
      ended_ = false;
      end_reason_.clear();
      queue_.clear();
      queue_.push_back(std::move(hello));
      heartbeat_every_ = 0;
    }
    std::unique_ptr<Call> call = stub->Connect(&context);
    std::thread writer([this, &call] { write(*call); });
    const bool was_welcome = read(*call, endpoint);
    {
      const std::lock_guard lock(mutex_);
      welcomed_ = false;
      ended_ = true;
      changed_.notify_all();
    }
    writer.join();
    bool replaced = false;
    const std::string why = finish(*call, &replaced);
    if (was_welcome) callbacks_.lost(why);
    if (was_welcome && replaced && callbacks_.replaced) callbacks_.replaced(why);
    return why;
  }

  std::string finish(Call& call, bool* replaced) {
    const grpc::Status status = call.Finish();
    *replaced = status.error_code() == grpc::StatusCode::ABORTED;
    const std::lock_guard lock(mutex_);
    context_ = nullptr;
    queue_.clear();
    if (!end_reason_.empty()) return end_reason_;
    if (status.ok()) return "the replica ended the stream";
    return status.error_message().empty() ? "it was cut" : status.error_message();
  }

  // True: a welcome was received.
  bool read(Call& call, const std::string& endpoint) {
    wire::ConnectResponse message;
    if (!call.Read(&message)) return false;
    if (!message.has_welcome()) {
      reconnect("the replica's first message is no welcome");
      return false;
    }
    const wire::StreamWelcome welcome = message.welcome();
    Result<Admission> admission =
        callbacks_.admit ? callbacks_.admit(welcome) : Result<Admission>(Admission());
    if (!admission) {
      reconnect(admission.error());
      return false;
    }
    {
      const std::lock_guard lock(mutex_);
      if (ended_) return false;
      if (admission->answers) {  // before all other messages
        wire::ConnectRequest ready;
        *ready.mutable_ready() = admission->ready;
        queue_.push_back(std::move(ready));
      }
      welcomed_ = admission->joins;
      // The value is clamped to 100 ms .. 10 s: heartbeats never flood the replica and never become
      // rare.
      if (welcomed_) {
        heartbeat_every_ = std::clamp<Nanos>(welcome.heartbeat_interval_ms() * kMillisecond,
                                             100 * kMillisecond, 10 * kSecond);
      }
      changed_.notify_all();
    }
    if (!admission->joins) {
      while (call.Read(&message)) {  // the replica ends the stream with a reason
      }
      return false;
    }
    log::info(
        "stream to the control plane",
        {{"endpoint", endpoint}, {"replica", welcome.replica()}, {"number", welcome.number()}});
    callbacks_.connected(welcome);
    while (call.Read(&message)) {
      if (message.has_goodbye()) {
        reconnect("the replica stops: " + message.goodbye().reason());
        break;
      }
      callbacks_.received(std::move(message));
      message.Clear();
    }
    return true;
  }

  void write(Call& call) {
    const Clock::time_point give_up = Clock::now() + nanos(options_.opening);
    Clock::time_point due = Clock::time_point::max();
    std::unique_lock lock(mutex_);
    while (!ended_) {
      if (heartbeat_every_ == 0 && Clock::now() >= give_up) {
        end_locked("no welcome within " + std::to_string(options_.opening / kMillisecond) + " ms");
        return;
      }
      if (heartbeat_every_ != 0 && due == Clock::time_point::max()) due = Clock::now();
      if (queue_.empty() && Clock::now() < due) {
        changed_.wait_until(lock, heartbeat_every_ == 0 ? give_up : due);
        continue;
      }
      wire::ConnectRequest message;
      grpc::WriteOptions options;
      if (Clock::now() >= due) {  // before queued messages, because the lease depends on it
        due = Clock::now() + nanos(heartbeat_every_);
        lock.unlock();
        *message.mutable_heartbeat() = callbacks_.heartbeat();
      } else {
        message = std::move(queue_.front());
        queue_.pop_front();
        // Messages of hundreds of volumes are sent together: only the last one flushes the buffer.
        if (!queue_.empty()) options.set_buffer_hint();
        lock.unlock();
      }
      const bool written = call.Write(message, options);
      lock.lock();
      if (!written) return;
    }
  }

  const StreamOptions options_;
  const StreamCallbacks callbacks_;
  std::mt19937_64 random_;  // used by the reader thread
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<wire::ConnectRequest> queue_;
  grpc::ClientContext* context_ = nullptr;  // of the current stream
  bool welcomed_ = false;
  bool ended_ = false;
  bool stopping_ = false;
  std::string end_reason_;
  Nanos heartbeat_every_ = 0;  // 0: no welcome yet
  std::thread reader_;         // last, because the threads use the other members
};

}  // namespace

Result<std::unique_ptr<Stream>> Stream::create(StreamOptions options, StreamCallbacks callbacks) {
  const Result<void> fine = check(options);
  if (!fine) return Error{fine.error()};
  return std::unique_ptr<Stream>(
      std::make_unique<StreamImpl>(std::move(options), std::move(callbacks)));
}

}  // namespace sluice::control
