"""What the judges' benchmark asks beside the demo's questions: claims, and other languages."""

from __future__ import annotations

from typing import NamedTuple


class Asked(NamedTuple):
    """What is asked about a question of the demo.

    Attributes:
        question: The question, as in `ctxeval.demo.questions`.
        true: A claim that the answering passages support.
        false: One that differs from it little, and that they contradict.
        chinese: The question in Chinese; "" where it is not asked in other languages.
        german: In German.
        spanish: In Spanish.
        also: Another topic of the reference that answers it too, at least in part.
    """

    question: str
    true: str
    false: str
    chinese: str = ""
    german: str = ""
    spanish: str = ""
    also: str = ""


ASKED: tuple[Asked, ...] = (
    Asked(
        "Why does my function remember the list from the last call when I use [] as the default?",
        "A default value is evaluated once, when the function is defined.",
        "A default value is evaluated anew at each call of the function.",
        "为什么我用 [] 作默认值时，函数会记住上次调用的列表？",
        "Warum merkt sich meine Funktion die Liste vom letzten Aufruf, wenn ich [] als "
        "Vorgabe nehme?",
        "¿Por qué mi función recuerda la lista de la última llamada cuando uso [] como "
        "valor por defecto?",
        also="calls",
    ),
    Asked(
        "Why does changing one row of my nested list change all the other rows too?",
        "Multiplying a list does not copy its items.",
        "Multiplying a list makes a copy of each of its items.",
        "为什么改动嵌套列表的一行，其他行也跟着变了？",
        "Warum ändern sich alle Zeilen meiner verschachtelten Liste, wenn ich eine ändere?",
        "¿Por qué al cambiar una fila de mi lista anidada cambian también todas las demás?",
    ),
    Asked(
        "Why does Python say that my variable has no value when I read it in the "
        "function before setting it?",
        "Reading a local variable before it is bound raises an UnboundLocalError.",
        "Reading a local variable before it is bound gives None.",
    ),
    Asked(
        "How can I change a global variable from inside a function?",
        "It is impossible to assign to a global variable without the global statement.",
        "A function can assign to a global variable without any statement.",
        "怎样在函数里修改全局变量？",
        "Wie kann ich in einer Funktion eine globale Variable ändern?",
        "¿Cómo puedo cambiar una variable global desde dentro de una función?",
        also="execmodel",
    ),
    Asked(
        "What do I write where Python wants some code but I have nothing to put there yet?",
        "When the pass statement is executed, nothing happens.",
        "When the pass statement is executed, the program ends.",
        "Python 要求写代码而我还没有内容时，该写什么？",
        "Was schreibe ich, wo Python eine Anweisung verlangt, ich aber noch nichts habe?",
        "¿Qué escribo donde Python exige código y todavía no tengo nada que poner?",
    ),
    Asked(
        "Why is my error variable gone after the except block?",
        "The target that follows as is cleared at the end of the except clause.",
        "The target that follows as keeps the exception after the except clause.",
    ),
    Asked(
        "How can I raise an error of my own and still show the first error that caused it?",
        "The second expression of raise is attached to the raised exception as its __cause__.",
        "The second expression of raise is discarded.",
        "怎样抛出自己的错误，同时还显示引起它的原始错误？",
        "Wie löse ich einen eigenen Fehler aus und zeige trotzdem den ursprünglichen, "
        "der ihn verursacht hat?",
        "¿Cómo lanzo un error propio y sigo mostrando el error original que lo causó?",
    ),
    Asked(
        "How do I print a number with a comma after every three digits?",
        "A comma in the format specification separates thousands.",
        "A comma in the format specification sets the number of decimal places.",
    ),
    Asked(
        "How do I split a line wherever there is a semicolon?",
        "str.split returns a list of the words in the string.",
        "str.split returns the number of words in the string.",
        "怎样在每个分号处把一行文字分开？",
        "Wie trenne ich eine Zeile an jedem Semikolon?",
        "¿Cómo divido una línea en cada punto y coma?",
    ),
    Asked(
        "How do I compare two words when one of them may be in capitals?",
        "Casefolding removes more case distinctions than lowercasing.",
        "Casefolding removes fewer case distinctions than lowercasing.",
        "其中一个单词可能是大写时，怎样比较两个单词？",
        "Wie vergleiche ich zwei Wörter, wenn eines davon großgeschrieben sein kann?",
        "¿Cómo comparo dos palabras si una puede estar en mayúsculas?",
    ),
    Asked(
        "How do I get a value from a dict without an error when the key is not there?",
        "get returns the default for a key that is not in the dictionary.",
        "get raises a KeyError for a key that is not in the dictionary.",
        "键不存在时，怎样从字典取值而不出错？",
        "Wie hole ich einen Wert aus einem Dict, ohne Fehler, wenn der Schlüssel fehlt?",
        "¿Cómo obtengo un valor de un diccionario sin error cuando falta la clave?",
    ),
    Asked(
        "Why is adding small pieces to a long string in a loop so slow?",
        "Building a string by repeated concatenation has a quadratic runtime cost.",
        "Building a string by repeated concatenation has a linear runtime cost.",
        "为什么在循环里给长字符串不断追加小段这么慢？",
        "Warum ist es so langsam, in einer Schleife kleine Stücke an einen langen String "
        "zu hängen?",
        "¿Por qué es tan lento añadir trozos pequeños a una cadena larga en un bucle?",
    ),
    Asked(
        "How do I choose what is shown when somebody prints one of my objects?",
        "__str__ must return a string object.",
        "__str__ may return a number.",
        "怎样决定打印我的对象时显示什么？",
        "Wie lege ich fest, was angezeigt wird, wenn jemand eines meiner Objekte ausgibt?",
        "¿Cómo decido qué se muestra cuando alguien imprime uno de mis objetos?",
    ),
    Asked(
        "What must my own class have so that I can loop over it with for?",
        "__iter__ should return a new iterator over the objects in the container.",
        "__iter__ should return the number of objects in the container.",
        "我自己的类要有什么，才能用 for 循环遍历它？",
        "Was muss meine Klasse haben, damit ich mit for über sie laufen kann?",
        "¿Qué debe tener mi clase para poder recorrerla con for?",
    ),
    Asked(
        "How do I put the first item of a list in one variable and all the rest in another?",
        "A list of the remaining items is assigned to the starred target.",
        "The remaining items are dropped by the starred target.",
        "怎样把列表的第一项放进一个变量，其余放进另一个？",
        "Wie kommt das erste Element einer Liste in eine Variable und der ganze Rest in "
        "eine andere?",
        "¿Cómo pongo el primer elemento de una lista en una variable y el resto en otra?",
    ),
    Asked(
        "When stopping at each line to find a bug, how do I avoid going into every "
        "function that gets called?",
        "next executes called functions at nearly full speed.",
        "next stops inside of each called function.",
    ),
    Asked(
        "Do I have to close my files myself or will Python do it sooner or later?",
        "Objects that hold external resources should be closed explicitly.",
        "Garbage collection is guaranteed to close external resources.",
        "我必须自己关闭文件，还是 Python 迟早会关闭？",
        "Muss ich meine Dateien selbst schließen, oder macht Python das früher oder später?",
        "¿Tengo que cerrar yo mis archivos o Python lo hará tarde o temprano?",
    ),
    Asked(
        "Can I test that a number lies between two others in one go, as in maths?",
        "In x < y <= z, the expression y is evaluated only once.",
        "In x < y <= z, the expression y is evaluated twice.",
        "能像数学里那样一次判断一个数是否在另两个数之间吗？",
        "Kann ich wie in der Mathematik in einem Zug prüfen, ob eine Zahl zwischen zwei "
        "anderen liegt?",
        "¿Puedo comprobar de una vez que un número está entre otros dos, como en matemáticas?",
    ),
    Asked(
        "Why does an or between two strings give me one of them back and not True?",
        "The operators and and or return the argument that was evaluated last.",
        "The operators and and or always return True or False.",
        "为什么两个字符串之间的 or 返回其中一个而不是 True？",
        "Warum liefert or zwischen zwei Strings einen von beiden und nicht True?",
        "¿Por qué un or entre dos cadenas me devuelve una de ellas y no True?",
    ),
    Asked(
        "Why does adding to a list in one object change it in all other objects of that class?",
        "Variables defined in the class definition are shared by the instances.",
        "Variables defined in the class definition are copied for each instance.",
    ),
    Asked(
        "How do I write a Windows path without doubling every backslash?",
        "Raw strings treat backslashes as literal characters.",
        "Raw strings treat backslashes as the beginning of an escape sequence.",
    ),
    Asked(
        "What do the dots before a module name in an import mean?",
        "One leading dot means the current package.",
        "One leading dot means the top-level package.",
        "import 中模块名前的点是什么意思？",
        "Was bedeuten die Punkte vor einem Modulnamen in einem Import?",
        "¿Qué significan los puntos delante del nombre de un módulo en un import?",
    ),
    Asked(
        "How do I pass all the items of a list to a function as separate arguments?",
        "Elements of the starred iterable are treated as additional positional arguments.",
        "Elements of the starred iterable are treated as keyword arguments.",
        "怎样把列表的所有元素作为单独的参数传给函数？",
        "Wie übergebe ich alle Elemente einer Liste einzeln als Argumente an eine Funktion?",
        "¿Cómo paso todos los elementos de una lista a una función como argumentos separados?",
    ),
    Asked(
        "In which order are multiple decorators of a function applied?",
        "Multiple decorators are applied in nested fashion.",
        "Only the last of multiple decorators is applied.",
    ),
    Asked(
        "Do names that end in two underscores undergo private name mangling in a class?",
        "A private name begins with two or more underscores and does not end in two or more.",
        "A private name begins and ends with two underscores.",
        also="identifiers",
    ),
    Asked(
        "Are instances hashable if their class defines __eq__ only?",
        "A class that overrides __eq__ and does not define __hash__ has its __hash__ set to None.",
        "A class that overrides __eq__ and does not define __hash__ keeps the __hash__ "
        "of its parent.",
    ),
    Asked(
        "When does a data descriptor take precedence over the dictionary of the instance?",
        "A descriptor that defines __set__() is a data descriptor.",
        "A descriptor that defines neither __set__() nor __delete__() is a data descriptor.",
    ),
    Asked(
        "What effect does declaring __slots__ have on the __dict__ of instances?",
        "__slots__ prevents the automatic creation of __dict__ for each instance.",
        "__slots__ creates a second __dict__ for each instance.",
        "声明 __slots__ 对实例的 __dict__ 有什么影响？",
        "Welche Wirkung hat __slots__ auf das __dict__ der Instanzen?",
        "¿Qué efecto tiene declarar __slots__ sobre el __dict__ de las instancias?",
    ),
    Asked(
        "Is an __exit__ method expected to reraise the exception it receives?",
        "__exit__() should not reraise the exception that was passed in.",
        "__exit__() must reraise the exception that was passed in.",
        also="with",
    ),
    Asked(
        "What is the meaning of a with statement that has several context managers?",
        "Several context managers are processed as if with statements were nested.",
        "Several context managers are processed in parallel.",
    ),
    Asked(
        "When does the reflected method of the right operand take priority over the "
        "method of the left one?",
        "A reflected method that the subclass of the right operand implements "
        "differently is called first.",
        "The method of the left operand is always called first.",
        also="customization",
    ),
    Asked(
        "What is the order of evaluation in an augmented assignment such as a[i] += f(x)?",
        "An augmented assignment evaluates the left-hand side before the right-hand side.",
        "An augmented assignment evaluates the right-hand side before the left-hand side.",
    ),
    Asked(
        "Which arithmetic operation is a right shift by n bits equivalent to?",
        "A right shift by n bits is a floor division by pow(2,n).",
        "A right shift by n bits is a multiplication with pow(2,n).",
    ),
    Asked(
        "Which operators of equal precedence are grouped from right to left?",
        "Exponentiation groups from right to left.",
        "Exponentiation groups from left to right.",
        also="power",
    ),
    Asked(
        "What do the conversion flags of a replacement field do?",
        "The flag !r calls repr() on the value.",
        "The flag !r calls str() on the value.",
    ),
    Asked(
        "How much memory does a range object need compared with a list?",
        "A range object takes the same amount of memory whatever the size of the range.",
        "A range object takes more memory the longer the range is.",
        "与列表相比，range 对象需要多少内存？",
        "Wie viel Speicher braucht ein range-Objekt im Vergleich zu einer Liste?",
        "¿Cuánta memoria necesita un objeto range en comparación con una lista?",
    ),
    Asked(
        "Which dictionary views support set operations?",
        "Keys views are set-like.",
        "Values views are treated as set-like.",
    ),
    Asked(
        "May a coroutine function contain a yield from expression?",
        "A yield from expression inside the body of a coroutine function is a SyntaxError.",
        "A yield from expression may be used inside the body of a coroutine function.",
    ),
    Asked(
        "Is it allowed to combine except and except* clauses in the same statement?",
        "except and except* cannot be mixed in the same try statement.",
        "except and except* may be mixed in the same try statement.",
    ),
    Asked(
        "How is a condition attached to a breakpoint?",
        "The second argument of break is an expression that must be true before the "
        "breakpoint is honored.",
        "The second argument of break is the number of times that the breakpoint is honored.",
    ),
    Asked(
        "What kind of object does a call to a generator function return?",
        "A function that uses the yield statement returns an iterator when it is called.",
        "A function that uses the yield statement runs to its end when it is called.",
    ),
    Asked(
        "What distinguishes soft keywords from other keywords?",
        "Soft keywords are reserved only in specific contexts.",
        "Soft keywords are reserved in all contexts.",
    ),
    Asked(
        "Is float('NaN') equal to itself?",
        "Not-a-number values are not equal to themselves.",
        "Not-a-number values are equal to themselves.",
        "float('NaN') 等于它自己吗？",
        "Ist float('NaN') gleich sich selbst?",
        "¿Es float('NaN') igual a sí mismo?",
    ),
    Asked(
        "How do eval() and exec() resolve free variables?",
        "eval() and exec() resolve free variables in the global namespace.",
        "eval() and exec() resolve free variables in the nearest enclosing namespace.",
    ),
    Asked(
        "Which names does a wild card import bind when __all__ is absent?",
        "Without __all__, the public names are all names that do not begin with an underscore.",
        "Without __all__, a wild card import binds no names.",
    ),
    Asked(
        "May a lambda expression contain statements?",
        "Functions created with lambda expressions cannot contain statements.",
        "Functions created with lambda expressions may contain annotations.",
        "lambda 表达式里可以有语句吗？",
        "Darf ein lambda-Ausdruck Anweisungen enthalten?",
        "¿Puede una expresión lambda contener sentencias?",
        also="function",
    ),
)
