// Connections to other gateways and the forwarding port, over real sockets on loopback.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>

#include "base/socket_address.h"
#include "net/engine.h"
#include "net/reactor.h"

namespace sluice::net {
namespace {

// Says what becomes of a dial, and echoes what it is sent.
class Echo final : public forward::Caller {
 public:
  // Empty: nothing became of it.
  std::string wait() {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(10), [this] { return !outcome_.empty(); });
    return outcome_;
  }
  std::string wait_closed() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !closed_.empty(); });
    return closed_;
  }
  void connected(iscsi::Transport& transport) override {
    transport_ = &transport;
    tell(&outcome_, "connected");
  }
  void unreachable(bool refused) override {
    over_ = true;
    tell(&outcome_, refused ? "refused" : "silent");
  }
  void receive(Slice bytes) override {
    out_.payload(std::move(bytes));
    transport_->schedule_flush();
  }
  void on_sent(size_t) override {}
  void on_closed() override {
    over_ = !lingers_;
    tell(&closed_, "closed");
  }
  void tick() override {}
  void drop(std::string) override {}
  iscsi::Outbox& outbox() override { return out_; }
  bool over() const override { return over_; }
  // On the reactor.
  void reset() {
    over_ = !lingers_;
    transport_->close(true);
  }
  // It is not over when its connection is, as if a backend kept a command of it.
  void linger(bool on) { lingers_ = on; }
  void end() {
    over_ = true;
    transport_->over();
  }
  // Sends `bytes` of the pool's, as many as go into whole buffers.
  void send(BufferPool& pool, size_t bytes) {
    for (; bytes >= BufferPool::kLargest; bytes -= BufferPool::kLargest) {
      BufferRef buffer = pool.allocate(BufferPool::kLargest);
      ASSERT_TRUE(buffer);
      uint8_t* data = buffer.data();
      out_.begin();
      out_.payload({std::move(buffer), data, BufferPool::kLargest});
    }
    transport_->schedule_flush();
  }

 private:
  void tell(std::string* what, const char* how) {
    const std::lock_guard lock(mutex_);
    *what = how;
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string outcome_;
  std::string closed_;
  bool over_ = false;
  bool lingers_ = false;
  iscsi::Transport* transport_ = nullptr;
  iscsi::Outbox out_;
};

class Listener {
 public:
  explicit Listener(int backlog = 8) {
    const KernelAddress any = kernel_address(parse_socket_address("127.0.0.1:0", 0).value());
    fd_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    EXPECT_EQ(::bind(fd_, any.get(), any.size), 0);
    EXPECT_EQ(::listen(fd_, backlog), 0);
  }
  ~Listener() { close(); }
  std::string address() const { return local_address(fd_); }
  int accept() const { return ::accept(fd_, nullptr, nullptr); }
  void close() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

class Dialling : public testing::Test {
 protected:
  void SetUp() override {
    Reactor::Setup setup;
    setup.memory = limits::kMinReactorMemory;
    setup.gateway = &gateway_;
    reactor_ = std::make_unique<Reactor>(setup);
    const Result<void> up = reactor_->start();
    if (!up) {
      reactor_.reset();
      GTEST_SKIP() << up.error();
    }
  }
  void TearDown() override {
    if (reactor_ == nullptr) return;
    reactor_->stop(true);
    reactor_->join();
  }
  std::shared_ptr<Echo> dial(const std::string& address) {
    auto echo = std::make_shared<Echo>();
    reactor_->post([this, address, echo] { reactor_->dialer().dial(address, echo); });
    return echo;
  }
  // On the reactor, in a turn of its own.
  void run(const std::function<void()>& task) {
    std::promise<void> done;
    reactor_->post([&] {
      task();
      done.set_value();
    });
    done.get_future().wait();
  }
  size_t in_use() {
    size_t bytes = 0;
    run([&] { bytes = reactor_->buffers().in_use(); });
    return bytes;
  }
  bool comes_down_to(size_t bytes) {
    for (int i = 0; i < 1000 && in_use() > bytes; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return in_use() <= bytes;
  }
  // The peer reads nothing, and the connection ends by `end`, but one of its commands stays.
  void expect_output_back(const std::function<void(Echo&, int fd)>& end) {
    const Listener there;
    const auto echo = dial(there.address());
    const int fd = there.accept();
    EXPECT_EQ(echo->wait(), "connected");
    echo->linger(true);
    const size_t before = in_use();
    run([&] { echo->send(reactor_->buffers(), kSaid); });
    EXPECT_GT(in_use(), before);
    end(*echo, fd);
    EXPECT_TRUE(comes_down_to(before));
    run([&] { echo->end(); });
    ::close(fd);
  }
  static constexpr size_t kSaid = size_t{24} << 20;  // more than two sockets hold

  iscsi::Gateway gateway_;
  std::unique_ptr<Reactor> reactor_;
};

TEST_F(Dialling, BytesAreTransferredInBothDirections) {
  const Listener there;
  const auto echo = dial(there.address());
  const int fd = there.accept();
  EXPECT_EQ(echo->wait(), "connected");
  ASSERT_EQ(::send(fd, "hello", 5, 0), 5);
  char back[5];
  ASSERT_EQ(::recv(fd, back, 5, MSG_WAITALL), 5);
  EXPECT_EQ(std::string_view(back, 5), "hello");
  ::close(fd);
  EXPECT_EQ(echo->wait_closed(), "closed");
}

TEST_F(Dialling, AnAddressWithoutAListenerIsRefused) {
  Listener there;
  const std::string address = there.address();
  there.close();
  EXPECT_EQ(dial(address)->wait(), "refused");
}

// A listener whose queue is full: connections to it are never accepted.
class FullListener : public Listener {
 public:
  FullListener() : Listener(0) {
    const KernelAddress to = kernel_address(parse_socket_address(address(), 0).value());
    for (int& fd : fillers_) {
      fd = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
      (void)::connect(fd, to.get(), to.size);
    }
  }
  ~FullListener() {
    for (const int fd : fillers_) ::close(fd);
  }

 private:
  int fillers_[4];
};

TEST_F(Dialling, AnUnresponsivePeerIsReportedAsSilent) {
  const FullListener there;
  EXPECT_EQ(dial(there.address())->wait(), "silent");
}

TEST_F(Dialling, ALostConnectionReturnsItsUnsentBuffers) {
  expect_output_back([](Echo& echo, int fd) {
    const linger reset{1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    ::shutdown(fd, SHUT_RDWR);
    EXPECT_EQ(echo.wait_closed(), "closed");
  });
}

TEST_F(Dialling, AResetConnectionReturnsItsUnsentBuffers) {
  expect_output_back([this](Echo& echo, int) { run([&] { echo.reset(); }); });
}

TEST_F(Dialling, AnInvalidAddressIsReportedAsSilent) {
  EXPECT_EQ(dial("nonsense")->wait(), "silent");
}

// DESIGN R6: the peer sees a reset, not an end of stream behind what was still queued.
TEST_F(Dialling, ADialledConnectionEndsWithAReset) {
  const Listener there;
  const auto echo = dial(there.address());
  const int fd = there.accept();
  EXPECT_EQ(echo->wait(), "connected");
  reactor_->post([echo] { echo->reset(); });
  char byte = 0;
  EXPECT_EQ(::recv(fd, &byte, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
  ::close(fd);
}

// Two gateways in one process: each probes the other over its forwarding port.
class TwoEngines : public testing::Test {
 protected:
  struct Side {
    lun::Exports exports;
    std::unique_ptr<Engine> engine;
    std::string address;
  };
  void SetUp() override {
    for (uint16_t i = 0; i < 2; ++i) {
      Options options;
      options.reactor_memory = limits::kMinReactorMemory;
      auto engine = Engine::start(std::move(options), sides_[i].exports);
      if (!engine) GTEST_SKIP() << engine.error();
      sides_[i].engine = std::move(engine).value();
      Engine& e = *sides_[i].engine;
      e.forwarding().set_identity({static_cast<uint16_t>(i + 1), "first"});
      e.forwarding().set_keys({{"key", "a key between two gateways"}});
      e.forwarding().set_peers({{1, "first", {}, {}}, {2, "first", {}, {}}});
      ASSERT_TRUE(e.listen({{.address = "127.0.0.1:0", .forwarding = true}}).ok());
      sides_[i].address = e.addresses().at(0);
    }
  }
  void TearDown() override {
    for (Side& side : sides_) {
      if (side.engine) side.engine->stop(limits::kShutdownBound);
    }
  }
  void introduce(const std::string& incarnation = "first") {
    sides_[0].engine->peers().set_on_reach(
        [this](uint16_t, const std::string&, const forward::Peers::Finding& found) {
          const std::lock_guard lock(mutex_);
          reach_ = found.reach;
          changed_.notify_all();
        });
    sides_[0].engine->peers().set({{2, incarnation, sides_[1].address, false, ""}});
  }
  void wait_for(forward::Reach wanted) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return reach_ == wanted; });
  }

  Side sides_[2];
  std::mutex mutex_;
  std::condition_variable changed_;
  forward::Reach reach_ = forward::Reach::kUnknown;
};

TEST_F(TwoEngines, AProbeDetectsThePeerAndItsShutdown) {
  introduce();
  wait_for(forward::Reach::kConnected);
  sides_[1].engine->stop(limits::kShutdownBound);
  sides_[1].engine.reset();
  wait_for(forward::Reach::kRefused);
}

TEST_F(TwoEngines, APeerOfAnotherIncarnationIsReportedAsRefused) {
  introduce("before");
  wait_for(forward::Reach::kRefused);
}

TEST_F(TwoEngines, APortalClosedAtRunTimeRefusesConnectionsAndOthersRemain) {
  Engine& engine = *sides_[1].engine;
  ASSERT_TRUE(engine.listen({{.address = "127.0.0.1:0"}}).ok());
  ASSERT_EQ(engine.addresses().size(), 2u);
  engine.close_portals({sides_[1].address});
  EXPECT_EQ(engine.addresses().size(), 1u);
  introduce();
  wait_for(forward::Reach::kRefused);
}

}  // namespace
}  // namespace sluice::net
