import java.io.File;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;

import javax.jms.Connection;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageListener;
import javax.jms.Session;
import javax.jms.TextMessage;

import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.command.ActiveMQQueue;
import org.apache.activemq.store.kahadb.KahaDBPersistenceAdapter;
import org.springframework.jms.connection.CachingConnectionFactory;
import org.springframework.jms.core.JmsTemplate;
import org.springframework.jms.core.ProducerCallback;
import org.springframework.jms.listener.DefaultMessageListenerContainer;

/**
 * Messaging benchmark: Spring JMS (JmsTemplate and DefaultMessageListenerContainer) over an ActiveMQ in this process, or
 * over whichever broker answers at --url. Prints one JSON line, without the time of the start and of a warm-up.
 * With --serve it is that broker: an ActiveMQ on a free port, each persistent message synced to disk.
 */
public final class Bench {
    static final Map<String, String> opt = new LinkedHashMap<>();

    static String s(String k, String d) { return opt.getOrDefault(k, d); }
    static int i(String k, int d) { return Integer.parseInt(s(k, Integer.toString(d))); }
    static double d(String k, double v) { return Double.parseDouble(s(k, Double.toString(v))); }
    static boolean b(String k, boolean d) { return Boolean.parseBoolean(s(k, Boolean.toString(d))); }
    static int payload;

    // ---------------------------------------------------------------- histogram (about 1.5 % wide buckets)
    static final class Hist {
        final AtomicLongArray n = new AtomicLongArray(64 * 64);
        void add(long ns) {
            if (ns < 1) ns = 1;
            int e = 63 - Long.numberOfLeadingZeros(ns);
            int m = e >= 6 ? (int) ((ns >>> (e - 6)) & 63) : (int) ((ns << (6 - e)) & 63);
            n.incrementAndGet(e * 64 + m);
        }
        void clear() { for (int k = 0; k < n.length(); k++) n.set(k, 0); }
        double us(double p) {
            long t = 0;
            for (int k = 0; k < n.length(); k++) t += n.get(k);
            if (t == 0) return 0;
            long want = (long) Math.ceil(t * p), c = 0;
            for (int k = 0; k < n.length(); k++) {
                c += n.get(k);
                if (c >= want) {
                    int e = k / 64, m = k % 64;
                    double v = Math.pow(2, e) * (1 + (m + 0.5) / 64.0);
                    return v / 1000.0;
                }
            }
            return 0;
        }
    }

    // ---------------------------------------------------------------- broker
    static BrokerService broker(String dir, boolean persistent, String connector) throws Exception {
        BrokerService bs = new BrokerService();
        bs.setBrokerName("bench");
        bs.setUseJmx(false);
        bs.setDataDirectory(dir);
        bs.setPersistent(persistent);
        if (persistent) {
            KahaDBPersistenceAdapter k = new KahaDBPersistenceAdapter();
            k.setDirectory(new File(dir, "kahadb"));
            k.setJournalDiskSyncStrategy("always");
            bs.setPersistenceAdapter(k);
        }
        if (connector != null) bs.addConnector(connector);
        bs.start();
        bs.waitUntilStarted();
        return bs;
    }

    // ---------------------------------------------------------------- counters shared by one run
    static final Hist e2e = new Hist(), sendLat = new Hist();
    static final AtomicLong received = new AtomicLong(), lastAt = new AtomicLong();
    static final AtomicBoolean wrong = new AtomicBoolean();
    // at most so many messages are under way
    static final Semaphore window = new Semaphore(10000);

    static void got(Message m) throws JMSException {
        long now = System.nanoTime();
        String t = ((TextMessage) m).getText();
        if (!t.startsWith(pad, 20)) wrong.set(true);
        e2e.add(now - Long.parseLong(t, 0, 20, 10));
        lastAt.set(now);
        received.incrementAndGet();
        window.release();
    }

    static String pad;
    static String text(long at) {
        StringBuilder sb = new StringBuilder(pad.length() + 20);
        String n = Long.toString(at);
        for (int k = n.length(); k < 20; k++) sb.append('0');
        return sb.append(n).append(pad).toString();
    }

    // ---------------------------------------------------------------- senders
    interface Sender { void send(long stamp) throws Exception; default void done() throws Exception { } }

    static ActiveMQConnectionFactory factory;
    static CachingConnectionFactory[] caching;      // one per connection of producers
    static JmsTemplate[] templates;
    static int batch;
    static final Destination dest = new ActiveMQQueue("bench");

    static Sender newSender(int who) {
        JmsTemplate template = templates[who % templates.length];
        if (batch == 0) return stamp -> template.convertAndSend(dest, text(stamp));
        // one JmsTemplate call = one transaction of `batch` messages
        return new Sender() {
            final List<Long> pend = new ArrayList<>();
            public void send(long stamp) { pend.add(stamp); if (pend.size() == batch) flush(); }
            void flush() {
                template.execute(dest, (ProducerCallback<Object>) (ss, p) -> {
                    for (long at : pend) p.send(ss.createTextMessage(text(at)));
                    ss.commit();
                    return null;
                });
                pend.clear();
            }
            public void done() { if (!pend.isEmpty()) flush(); }
        };
    }

    // ---------------------------------------------------------------- receivers
    static AutoCloseable receiver;

    static void startReceiver() throws Exception {
        if (batch > 0) { batchReceiver(); return; }
        DefaultMessageListenerContainer c = new DefaultMessageListenerContainer();
        c.setConnectionFactory(factory);
        c.setDestination(dest);
        c.setErrorHandler(t -> { });
        c.setMessageListener((MessageListener) m -> {
            try { got(m); } catch (JMSException e) { throw new RuntimeException(e); }
        });
        c.afterPropertiesSet();
        c.start();
        receiver = c::shutdown;
    }

    // as many messages in one transaction as the sender has
    static void batchReceiver() throws Exception {
        Connection c = factory.createConnection();
        c.start();
        AtomicBoolean stop = new AtomicBoolean();
        Thread t = new Thread(() -> {
            try {
                Session ss = c.createSession(true, Session.SESSION_TRANSACTED);
                MessageConsumer mc = ss.createConsumer(dest);
                int open = 0;
                while (!stop.get()) {
                    Message m = mc.receive(50);
                    if (m != null) { got(m); open++; }
                    if (open > 0 && (open == batch || m == null)) { ss.commit(); open = 0; }
                }
                if (open > 0) ss.commit();
            } catch (JMSException e) { if (!stop.get()) e.printStackTrace(); }
        });
        t.start();
        receiver = () -> { stop.set(true); t.join(2000); c.close(); };
    }

    // ---------------------------------------------------------------- one phase of sending
    static final class Phase { long sent, got; double totalSecs; }

    static Phase phase(double secs) throws Exception {
        received.set(0); e2e.clear(); sendLat.clear();
        int np = i("producers", 1);
        AtomicLong sent = new AtomicLong();
        AtomicInteger errors = new AtomicInteger();
        Thread[] ts = new Thread[np];
        long begin = System.nanoTime();
        long end = begin + (long) (secs * 1e9);
        for (int k = 0; k < np; k++) {
            final int who = k;
            ts[k] = new Thread(() -> {
                try {
                    Sender sn = newSender(who);
                    long n = 0;
                    while (System.nanoTime() < end) {
                        if (!window.tryAcquire(1, 30, TimeUnit.SECONDS)) { errors.incrementAndGet(); break; }
                        long stamp = System.nanoTime();
                        sn.send(stamp);
                        sendLat.add(System.nanoTime() - stamp);
                        n++;
                    }
                    sn.done();
                    sent.addAndGet(n);
                } catch (Exception e) { e.printStackTrace(); errors.incrementAndGet(); }
            });
            ts[k].start();
        }
        for (Thread t : ts) t.join();
        Phase p = new Phase();
        p.sent = sent.get();
        long sendEnd = System.nanoTime(), giveUp = sendEnd + 60_000_000_000L;
        while (received.get() < p.sent && System.nanoTime() < giveUp) Thread.sleep(1);
        p.totalSecs = (Math.max(lastAt.get(), sendEnd) - begin) / 1e9;
        p.got = received.get();
        if (p.got != p.sent || errors.get() > 0 || wrong.get()) {
            System.err.println("sent " + p.sent + " received " + p.got + ", errors: " + errors.get()
                    + (wrong.get() ? ", a payload is not what was sent" : ""));
            System.exit(1);
        }
        return p;
    }

    static void line(Phase p) {
        Map<String, Object> m = new LinkedHashMap<>();
        m.put("peer", s("peer", "activemq"));
        m.put("scenario", s("name", "?"));
        m.put("api", "spring");
        m.put("transport", opt.containsKey("url") ? "tcp" : "vm");
        m.put("persistent", b("persistent", true));
        m.put("sync", b("persistent", true) ? "always" : "never");
        m.put("payload", payload);
        m.put("producers", i("producers", 1));
        m.put("connections", i("connections", 1));
        m.put("consumers", 1);
        m.put("run", i("run", 1));
        m.put("messages", p.got);
        m.put("seconds", p.totalSecs);
        m.put("msgs_per_s", p.got / p.totalSecs);
        m.put("p50_us", e2e.us(0.50)); m.put("p99_us", e2e.us(0.99)); m.put("p999_us", e2e.us(0.999));
        m.put("send_p50_us", sendLat.us(0.50)); m.put("send_p99_us", sendLat.us(0.99));
        StringBuilder sb = new StringBuilder();
        for (Map.Entry<String, Object> e : m.entrySet()) {
            sb.append(sb.length() == 0 ? "{" : ",").append('"').append(e.getKey()).append("\":");
            Object v = e.getValue();
            if (v instanceof String) sb.append('"').append(v).append('"');
            else if (v instanceof Double) sb.append(String.format(java.util.Locale.ROOT, "%.3f", (Double) v));
            else sb.append(v);
        }
        System.out.println(sb.append('}'));
        System.out.flush();
    }

    public static void main(String[] a) throws Exception {
        for (int k = 0; k + 1 < a.length; k += 2) opt.put(a[k].replaceFirst("^--", ""), a[k + 1]);
        boolean persistent = b("persistent", true);
        if (b("serve", false)) {
            BrokerService served = broker(s("data", "data"), persistent, "tcp://127.0.0.1:0");
            System.out.println("READY " + served.getTransportConnectors().get(0).getPublishableConnectString());
            System.out.flush();
            served.waitUntilStopped();
            return;
        }
        batch = i("batch", 0);
        payload = i("payload", 1024);
        StringBuilder sb = new StringBuilder();
        while (sb.length() < payload - 20) sb.append((char) ('a' + sb.length() % 26));
        pad = sb.toString();

        BrokerService bs = opt.containsKey("url") ? null : broker(s("data", "data"), persistent, null);
        factory = new ActiveMQConnectionFactory(s("url", "vm://bench?create=false"));
        int connections = i("connections", 1);
        caching = new CachingConnectionFactory[connections];
        templates = new JmsTemplate[connections];
        for (int k = 0; k < connections; k++) {
            caching[k] = new CachingConnectionFactory(factory);
            caching[k].setSessionCacheSize(i("producers", 1));
            caching[k].setCacheConsumers(false);
            templates[k] = new JmsTemplate(caching[k]);
            templates[k].setExplicitQosEnabled(true);
            templates[k].setDeliveryPersistent(persistent);
            templates[k].setSessionTransacted(batch > 0);
        }

        startReceiver();
        phase(d("warmup", 3));
        line(phase(d("seconds", 5)));
        receiver.close();
        for (CachingConnectionFactory one : caching) one.destroy();
        if (bs != null) bs.stop();
        System.exit(0);
    }
}
