package sqlock;

import com.zaxxer.hikari.HikariDataSource;
import java.lang.reflect.InvocationTargetException;
import java.time.Duration;
import java.util.UUID;
import java.util.concurrent.locks.Lock;
import javax.sql.DataSource;
import org.springframework.context.annotation.AnnotationConfigApplicationContext;
import org.springframework.context.annotation.Configuration;
import org.springframework.integration.jdbc.lock.DefaultLockRepository;
import org.springframework.integration.jdbc.lock.JdbcLockRegistry;
import org.springframework.integration.jdbc.lock.LockRepository;
import org.springframework.jdbc.datasource.DataSourceTransactionManager;
import org.springframework.transaction.annotation.EnableTransactionManagement;

/**
 * A lock registry of Spring's as an application has it: in a context, with a
 * transaction manager and a pool of connections.
 */
final class Peer {
    /** Spring Integration 5's repository has its transactions by annotation. */
    @Configuration(proxyBeanMethods = false)
    @EnableTransactionManagement
    static class Transactions {
    }

    final String client = UUID.randomUUID().toString();
    final LockRepository repository;
    final JdbcLockRegistry registry;
    volatile boolean stopped;
    volatile long thinkMs;
    private final AnnotationConfigApplicationContext context =
            new AnnotationConfigApplicationContext();

    Peer(String prefix, String region, int ttlMs) throws Exception {
        context.register(Transactions.class);
        context.registerBean(HikariDataSource.class, Peer::connect);
        context.registerBean(DataSourceTransactionManager.class,
                () -> new DataSourceTransactionManager(
                        context.getBean(DataSource.class)));
        context.registerBean(DefaultLockRepository.class,
                () -> makeRepository(prefix, region, ttlMs));
        context.refresh();
        repository = context.getBean(LockRepository.class);
        registry = makeRegistry(repository, ttlMs);
    }

    private static HikariDataSource connect() {
        HikariDataSource source = new HikariDataSource();
        source.setJdbcUrl(System.getenv("SPRING_JDBC_URL"));
        source.setUsername(System.getenv("SPRING_JDBC_USER"));
        source.setPassword(System.getenv("SPRING_JDBC_PASSWORD"));
        source.setMaximumPoolSize(4);
        source.setConnectionTimeout(120_000);
        return source;
    }

    /** The TTL is the repository's before Spring 7.1. */
    private DefaultLockRepository makeRepository(String prefix, String region,
            int ttlMs) {
        DefaultLockRepository made = new DefaultLockRepository(
                context.getBean(DataSource.class), client);
        made.setPrefix(prefix);
        made.setRegion(region);
        try {
            DefaultLockRepository.class.getMethod("setTimeToLive", int.class)
                    .invoke(made, ttlMs);
        } catch (NoSuchMethodException e) {
            return made;
        } catch (ReflectiveOperationException e) {
            throw new IllegalStateException(e);
        }
        return made;
    }

    /** And the registry's since 7.0. */
    private static JdbcLockRegistry makeRegistry(LockRepository repository,
            int ttlMs) throws Exception {
        try {
            return JdbcLockRegistry.class
                    .getConstructor(LockRepository.class, Duration.class)
                    .newInstance(repository, Duration.ofMillis(ttlMs));
        } catch (NoSuchMethodException e) {
            return new JdbcLockRegistry(repository);
        } catch (InvocationTargetException e) {
            throw (Exception) e.getCause();
        }
    }

    /** Spring 7's is a Lock with more to it: the common type is asked for. */
    Lock lock(String name) {
        return registry.obtain(name);
    }

    /** Spring deletes the rows of the client. */
    void close() {
        context.close();
    }
}
